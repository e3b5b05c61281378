"""`follow.py SERVER CA TOKEN NAMESPACE POD LOG`: follows a log, to be killed by a test."""

import sys
import threading
from pathlib import Path

from jobs.backends.kubernetes.client.api import Api
from jobs.backends.kubernetes.client.connection import from_settings
from jobs.backends.kubernetes.logs import copies
from jobs.backends.kubernetes.sessions import ContainerRef


def main() -> None:
    """Follow until all is copied."""
    server, ca, token, namespace, pod, log = sys.argv[1:]
    api = Api(from_settings(server, ca=ca, token=token))
    copies.follow(api, ContainerRef(namespace, pod, "main"), Path(log), threading.Event())


if __name__ == "__main__":
    main()
