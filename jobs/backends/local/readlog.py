"""A replica's output, from a byte on."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from jobs.backends.base import LogSlice, LogState
from jobs.node import files
from jobs.node.supervisor import layout
from jobs.node.supervisor.plan import Plan


def read(attempt: Path, role: str, index: int, cursor: str, limit: int) -> LogSlice:
    """At most `limit` bytes from `cursor`, which is the number of bytes before it."""
    offset = int(cursor or "0")
    name = _name(attempt, role, index)
    if name is None:
        return LogSlice(b"", cursor, LogState.GONE)
    over = (attempt / "replicas" / name / layout.EXIT).exists()
    data, size = _bytes(attempt / "logs" / f"{name}.output", offset, limit)
    if offset > size:
        return LogSlice(b"", str(size), LogState.TRUNCATED)
    end = offset + len(data)
    return LogSlice(data, str(end), LogState.COMPLETE if over and end >= size else LogState.OPEN)


def _name(attempt: Path, role: str, index: int) -> str | None:
    """The replica's name in file names; None when there is no such replica."""
    value = files.read(attempt / layout.PLAN)
    places = Plan.load(value).replicas() if value else []
    return next((one.name for one in places if one.role.name == role and one.index == index), None)


def _bytes(path: Path, offset: int, limit: int) -> tuple[bytes, int]:
    """The bytes, and the file's size before they were read.  Only a plain file of our own is read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b"", 0
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink != 1:
            return b"", 0
        return os.pread(fd, limit, offset), found.st_size
    finally:
        os.close(fd)
