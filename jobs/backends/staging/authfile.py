"""OpenPAI's authFile: three lines, the image registry, the user's name and the password (v0.14)."""

from __future__ import annotations

from typing import Final

from jobs.backends.staging.mounts import MountPlanner, refusal
from jobs.facilities import local_path
from jobs.node.sandbox.folder_access import read_file

_MOST: Final = 4096
_LINES: Final = 3


def login(uri: str, layer: MountPlanner) -> dict[str, str]:
    """The login for the image registry; raises Refused for a file that can't be had or says another thing."""
    place = local_path(layer.resolve(uri))
    if place is None:
        raise refusal("auth_elsewhere", place=uri)
    path = layer.grant(place).path
    try:
        lines = read_file(path, layer.ground.owner, _MOST).decode().split()
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else None
        raise refusal("auth_file", place=place, error=words) from error
    if len(lines) != _LINES:
        raise refusal("auth_file", place=place)
    return dict(zip(("registry", "username", "password"), lines, strict=True))
