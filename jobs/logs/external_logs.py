"""Logs of external jobs, read from the files that their schedulers name.

Such a file has to lie below a folder that an admin lists in the cluster's settings, reached through no link
below that, and be a regular file that belongs to the job's own user: a job may claim any path as its output,
also a file of somebody else.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from django.conf import settings

from jobs.logs.log_store import open_beneath, open_folder
from jobs.models import ExternalJob
from quotas.models import Cluster

WINDOW: Final = 64 * 1024
"""Bytes that are shown at a time."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a log: bytes from `start` to `end` of `size`."""

    data: bytes
    start: int
    end: int
    size: int


def has_log(job: ExternalJob) -> bool:
    """Tell whether its log lies in a folder that may be read; the file may be missing."""
    return _locate(job) is not None


def read(job: ExternalJob, *, before: int | None = None, after: int | None = None) -> Window | None:
    """Read the part that ends at `before`, begins at `after`, or ends with the log.

    It is cut to whole lines where they are not long.  None where nothing may be read.
    """
    with _open_own(job) as file:
        if file is None:
            return None
        size = os.fstat(file).st_size
        if after is not None:
            start = min(after, size)
            end = min(start + WINDOW, size)
        else:
            end = size if before is None else min(before, size)
            start = max(0, end - WINDOW)
        data = os.pread(file, end - start, start)
    return _whole_lines(data, start, size, from_start=after is not None)


def _whole_lines(data: bytes, start: int, size: int, *, from_start: bool) -> Window:
    """Cut the incomplete line at the end that is away from the requested position."""
    if from_start and start + len(data) < size and (cut := data.rfind(b"\n")) >= 0:
        data = data[: cut + 1]
    elif not from_start and start and 0 <= (cut := data.find(b"\n")) < len(data) - 1:
        data, start = data[cut + 1 :], start + cut + 1
    return Window(data, start, start + len(data), size)


def _locate(job: ExternalJob) -> tuple[Path, tuple[str, ...]] | None:
    """Return the listed folder that its log lies in, and the path from there."""
    path = PurePosixPath(job.output)
    if not job.output.startswith("/") or ".." in path.parts or "\0" in job.output:
        return None
    for folder in _folders(job.cluster):
        if path.is_relative_to(folder) and path != PurePosixPath(folder):
            return Path(folder), path.relative_to(folder).parts
    return None


def _folders(cluster: Cluster) -> list[str]:
    listed = cluster.config.get("logs")
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


@contextmanager
def _open_own(job: ExternalJob) -> Iterator[int | None]:
    found = _locate(job)
    file = _open(*found) if found else None
    try:
        yield file if file is not None and _is_theirs(file, job.user) else None
    finally:
        if file is not None:
            os.close(file)


def _open(folder: Path, parts: tuple[str, ...]) -> int | None:
    """Open a file beneath the folder, which may itself be a link, but not into the console's own folders."""
    try:
        target = folder.resolve(strict=True)
        if any(target.joinpath(*parts).is_relative_to(own) for own in _own_folders()):
            return None
        return open_beneath(open_folder(target), parts)
    except OSError:
        return None


def _own_folders() -> list[Path]:
    folders = map(str, (settings.CONSOLE_HOME, settings.CONSOLE_SHARED_FOLDER, settings.CONSOLE_SLURM_FOLDER))
    return [Path(each).resolve() for each in folders if each]


def _is_theirs(file: int, user: str) -> bool:
    found = os.fstat(file)
    return stat.S_ISREG(found.st_mode) and found.st_uid == _uid(user)


def _uid(user: str) -> int | None:
    """Return the user's number on this machine; Slurm gives the number itself where it knows no name."""
    with suppress(KeyError):
        return pwd.getpwnam(user).pw_uid
    return int(user) if user.isascii() and user.isdigit() else None
