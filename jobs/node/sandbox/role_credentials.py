"""Variables and files by which the SDKs in a job find the credentials of its role.

Alibaba's get them from ALIBABA_CLOUD_CREDENTIALS_URI, unless a metadata service gives some first.  AWS's get
them from AWS_CONTAINER_CREDENTIALS_FULL_URI and show the content of a file, which is the job's own and no
secret outside of its network.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from jobs.node.network.rules import CREDENTIALS, SERVICE
from jobs.node.network.service import ALIBABA_PATH, AWS_PATH
from jobs.node.staging import mount_paths
from jobs.node.wrapper.launch_arguments import LaunchArguments

SECRET: Final = "role_token"  # noqa: S105 a name
"""Among an attempt's secrets: the content of the file."""
PROVIDER: Final = "role_provider"
"""And the cloud of the role."""

_AWS: Final = "aws"
_FILE: Final = ".job-console-role-token"
_VARIABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "alibaba": {
        "ALIBABA_CLOUD_CREDENTIALS_URI": f"http://{SERVICE}{ALIBABA_PATH}",
        "ALIBABA_CLOUD_ECS_METADATA_DISABLED": "true",
    },
    _AWS: {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://{CREDENTIALS}{AWS_PATH}",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{mount_paths.WORK}/{_FILE}",
    },
}


def variables_of(provider: str) -> Mapping[str, str]:
    """Return the variables for the SDKs of a provider, "" for none; replicas have a network of their own."""
    return _VARIABLES.get(provider, {})


def variables_beside(provider: str, url: str, work: str) -> Mapping[str, str]:
    """Return those for a server at `url` beside a replica with the work folder `work`."""
    if provider == _AWS:
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": url,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{work}/{_FILE}",
        }
    return {**_VARIABLES[provider], "ALIBABA_CLOUD_CREDENTIALS_URI": url}


def needs_server(launch: LaunchArguments) -> bool:
    """Tell whether a server beside the replica gives it credentials: it has a role and no own network."""
    secrets = launch.secrets
    return launch.plan.network is None and bool(secrets.get(SECRET) and secrets.get(PROVIDER))


def write_token(launch: LaunchArguments) -> None:
    """Write the file of a replica whose work folder is new, for the job's user alone."""
    token = launch.secrets.get(SECRET)
    if not token:
        return
    fd = os.open(launch.file("work") / _FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(token)
        if os.geteuid() == 0:
            os.fchown(fd, *launch.owner)
