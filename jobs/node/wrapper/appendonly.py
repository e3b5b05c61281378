"""The file of a replica's log: the console's own, and written by the replica's wrapper alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from pathlib import Path
from typing import Final

_GET_FLAGS: Final = 0x80086601
_SET_FLAGS: Final = 0x40086602
_APPEND_ONLY: Final = 0x20


def open_log(path: Path) -> int:
    """Make or open the log; not with O_APPEND, into which the kernel moves nothing by itself."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def release(path: Path) -> None:
    """Let a log be removed that an earlier release marked as append-only; absent is fine."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            _unmark(fd)
        finally:
            os.close(fd)


def _unmark(fd: int) -> None:
    with contextlib.suppress(OSError):  # not every file system knows it, and not every user may
        (flags,) = struct.unpack("i", fcntl.ioctl(fd, _GET_FLAGS, bytes(4)))
        if flags & _APPEND_ONLY:
            fcntl.ioctl(fd, _SET_FLAGS, struct.pack("i", flags & ~_APPEND_ONLY))
