"""Checkpoints of a job: the folder that outlives its attempts, and the newest complete checkpoint in it.

A checkpoint is a file or a folder there that is not empty.  It is complete once it has its final name: names
that begin with a dot or end in `.tmp` are those of unfinished ones.  An entry `latest` names the one to
resume from, as text or as a link; without it the newest counts, by the time of its last change.
"""

from __future__ import annotations

import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = "checkpoints"
"""The name of the folder, beside those of the job's attempts."""

VARIABLE: Final = "CHECKPOINT_DIR"
RESUME_VARIABLE: Final = "RESUME_FROM"
LATEST: Final = "latest"
UNFINISHED: Final = ".tmp"

_LONGEST_NAME: Final = 255
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint by its name, and when it was saved, in seconds since 1970."""

    name: str
    saved_at: float

    def dump(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def folder_of(attempt: Path) -> Path:
    """Return the folder for the checkpoints of an attempt's job."""
    return attempt.parent / FOLDER


def find_newest(folder: Path) -> Checkpoint | None:
    """Return the checkpoint to resume from; None where there is none.

    The job writes the folder: no link is followed.
    """
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = _find(fd, _read_latest(fd))
        return found or max(
            (each for name in os.listdir(fd) if (each := _find(fd, name)) is not None),  # noqa: PTH208 opened
            key=lambda each: (each.saved_at, each.name),
            default=None,
        )
    finally:
        os.close(fd)


def _read_latest(fd: int) -> str:
    """Return the name that `latest` has, "" for none."""
    try:
        return os.readlink(LATEST, dir_fd=fd)
    except OSError:
        pass
    try:
        file = os.open(LATEST, _READ, dir_fd=fd)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return ""
        return os.read(file, _LONGEST_NAME + 1).decode(errors="replace").partition("\n")[0].strip()
    finally:
        os.close(file)


def _find(fd: int, name: str) -> Checkpoint | None:
    """Return the complete checkpoint of that name; None for anything else."""
    is_final = name and not name.startswith(".") and not name.endswith(UNFINISHED) and name != LATEST
    if not is_final or "/" in name or not name.isprintable():
        return None
    try:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            is_complete = _has_entries(fd, name)
        else:
            is_complete = stat.S_ISREG(found.st_mode) and found.st_size > 0
    except OSError:
        return None
    return Checkpoint(name, found.st_mtime) if is_complete else None


def _has_entries(fd: int, name: str) -> bool:
    inner = os.open(name, _READ | os.O_DIRECTORY, dir_fd=fd)
    try:
        with os.scandir(inner) as entries:
            return next(entries, None) is not None
    finally:
        os.close(inner)
