"""A private dstack server for one measurement: its database is SQLite in a folder of its own.

It has no fleet.  On a host jobs are run by dstack-shim and dstack-runner, which the server downloads; neither
Python's nor Debian's packages have them, nor all Go modules to build them from.  So jobs are only accepted.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx

from tests.clients import environments
from tests.ports import free_port
from tests.waiting import wait_for

LOCKS: Final = Path(__file__).parent
START_S: Final = 120.0
NOWHERE: Final = "http://127.0.0.1:9"
"""A proxy that refuses connections: dstack asks the internet for newer versions and the prices of clouds."""


@dataclass
class DstackServer:
    """A running dstack server."""

    base: Path
    python: Path
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of its API."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, **settings: str) -> None:
        """Start the server with these further settings, and wait until it answers."""
        environment = {
            "PATH": f"{self.python.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.base),
            "LANG": "C.UTF-8",
            "HTTPS_PROXY": NOWHERE,
            "DSTACK_SERVER_ADMIN_TOKEN": self.token,
            "DSTACK_SERVER_LOG_LEVEL": "WARNING",
            "DSTACK_DEFAULT_CREDS_DISABLED": "1",
            **settings,
        }
        with (self.base / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.python, self.python.with_name("dstack"), "server", "--no", "--port", str(self.port)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(self.answers, START_S, interval=0.3)

    def answers(self) -> bool:
        """Tell whether the API answers."""
        try:
            return httpx.get(f"{self.url}/healthcheck", timeout=10, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def stop(self) -> None:
        """Kill the server."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def restart_without_scheduler(self) -> None:
        """Have jobs accepted, and stay as they were submitted."""
        self.stop()
        self.start(DSTACK_SERVER_BACKGROUND_PROCESSING_DISABLED="1")


@contextmanager
def server() -> Iterator[DstackServer]:
    """Start a server; skips where its packages cannot be had."""
    python = environments.python("dstack", LOCKS)
    base = Path(tempfile.mkdtemp(prefix="jcdstack-", dir="/tmp"))
    started = DstackServer(base, python)
    try:
        started.start()
        yield started
    finally:
        started.stop()
        shutil.rmtree(base, ignore_errors=True)
