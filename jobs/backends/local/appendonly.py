"""The file into which a replica writes: opened for appending, and the console's own.

A container engine gives it to the container's user, who could then open it anew: `> /dev/stderr` would
cut it off.  There the file itself is marked as append-only, where the file system and our rights allow
it; then nobody gives it away either.
"""

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


def open_log(path: Path, *, mark: bool) -> int:
    """Make or open the log; `mark` it until `release`."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    if mark:
        _mark(fd, on=True)
    return fd


def release(path: Path) -> None:
    """Let the log be removed again; absent is fine."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            _mark(fd, on=False)
        finally:
            os.close(fd)


def _mark(fd: int, *, on: bool) -> None:
    with contextlib.suppress(OSError):  # not every file system knows it, and not every user may
        (flags,) = struct.unpack("i", fcntl.ioctl(fd, _GET_FLAGS, bytes(4)))
        wanted = flags | _APPEND_ONLY if on else flags & ~_APPEND_ONLY
        if wanted != flags:
            fcntl.ioctl(fd, _SET_FLAGS, struct.pack("i", wanted))
