"""Paths in a job that may be mounted over: not those of the system, of the console or the job itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from jobs.node.sandbox.folders import parts_of

WORK: Final = "/job"
CONSOLE_FOLDER: Final = "/job-console"
CHECKPOINTS: Final = "/job-checkpoints"
TMP: Final = "/tmp"  # noqa: S108 the replica's own
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 the replica's own

_SYSTEM: Final = tuple(
    parts_of(path)
    for path in (
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/proc",
        "/run",
        "/sbin",
        "/sys",
        "/usr",
        "/var/run",
        CONSOLE_FOLDER,
    )
)
_OWN: Final = (parts_of(WORK), parts_of(TMP))
_LONGEST: Final = 1024
_UNSAYABLE: Final = frozenset(":,")
"""A container engine reads these as the end of a path."""


def is_free(path: str) -> bool:
    """Tell whether something may be laid there: an absolute path, neither the system's nor the console's."""
    parts = parts_of(path)
    if not parts or len(path) > _LONGEST or not path.isprintable() or _UNSAYABLE & set(path):
        return False
    return parts not in _OWN and not any(parts[: len(system)] == system for system in _SYSTEM)


def is_sayable(path: str) -> bool:
    """Tell whether a container engine understands the path of a folder."""
    return path.isprintable() and not _UNSAYABLE & set(path)


def clash(paths: Iterable[str]) -> str | None:
    """The first path that is, or lies in, another one; None when all stand apart."""
    seen: list[tuple[str, ...]] = []
    for path in paths:
        parts = parts_of(path)
        if any(parts[: len(other)] == other or other[: len(parts)] == parts for other in seen):
            return path
        seen.append(parts)
    return None


def locate(path: str) -> str:
    """Return a path of a job file in the job: a relative one is below its working folder."""
    return normalize(path if path.startswith("/") else f"{WORK}/{path}")


def normalize(path: str) -> str:
    """The same path without doubled slashes and single dots."""
    return "/" + "/".join(parts_of(path))
