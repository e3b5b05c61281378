"""Logs of jobs that others run, read where they lie: below a folder that an admin lists in the cluster's
settings, through no link below that, a regular file that belongs to the job's own user.

Whom a file belongs to is what counts: a job may say that it writes wherever it likes, into files of others
too.
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

from jobs.models import OtherJob
from quotas.models import Cluster

WINDOW: Final = 64 * 1024
"""So many bytes are shown at a time."""


@dataclass(frozen=True, slots=True)
class Window:
    """Some of a log: bytes from `start` to `end` of `size`."""

    data: bytes
    start: int
    end: int
    size: int


def has_log(job: OtherJob) -> bool:
    """Whether its log lies where logs may be read; not whether it can be."""
    return _beneath(job) is not None


def read(job: OtherJob, *, before: int | None = None, after: int | None = None) -> Window | None:
    """What ends at `before`, begins at `after`, or stands at the end; whole lines where they are not long.

    None where there is nothing that may be read.
    """
    with _opened(job) as file:
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
    """Cut at the end that was not asked for."""
    if from_start and start + len(data) < size and (cut := data.rfind(b"\n")) >= 0:
        data = data[: cut + 1]
    elif not from_start and start and 0 <= (cut := data.find(b"\n")) < len(data) - 1:
        data, start = data[cut + 1 :], start + cut + 1
    return Window(data, start, start + len(data), size)


def _beneath(job: OtherJob) -> tuple[Path, tuple[str, ...]] | None:
    """The listed folder that its log lies in, and the way on from there."""
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
def _opened(job: OtherJob) -> Iterator[int | None]:
    found = _beneath(job)
    file = _open(*found) if found else None
    try:
        yield file if file is not None and _is_theirs(file, job.user) else None
    finally:
        if file is not None:
            os.close(file)


def _open(folder: Path, parts: tuple[str, ...]) -> int | None:
    """A file beneath the folder, which may itself be a link, unless that leads to what is the console's."""
    try:
        place = folder.resolve(strict=True)
        if any(place.joinpath(*parts).is_relative_to(own) for own in _own_places()):
            return None
        here = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        for part in parts[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            deeper = os.open(part, flags, dir_fd=here)
            os.close(here)
            here = deeper
        # A named pipe must not keep the page waiting.
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    except OSError:
        return None
    finally:
        os.close(here)


def _own_places() -> list[Path]:
    places = [str(settings.CONSOLE_HOME), str(settings.CONSOLE_SLURM_FOLDER)]
    return [Path(each).resolve() for each in places if each]


def _is_theirs(file: int, user: str) -> bool:
    found = os.fstat(file)
    return stat.S_ISREG(found.st_mode) and found.st_uid == _uid(user)


def _uid(user: str) -> int | None:
    """The user's number on this machine; Slurm tells the number itself of one whose name it does not know."""
    with suppress(KeyError):
        return pwd.getpwnam(user).pw_uid
    return int(user) if user.isascii() and user.isdigit() else None
