"""Times of a log: a sparse index beside it, from which each line gets its time.

An entry is 16 bytes, big-endian: an offset of the log, and the Unix time in milliseconds at which the bytes
from there on came.  Bytes that come within `STEP_MS` of an entry belong to it, so a time is exact to that.
The index of a log that grows for days becomes coarser (`step_ms`) instead of large.
`jobs.logs.log_times` reads it; on the nodes of Slurm clusters the job's script writes the same.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import Final

ENTRY: Final = struct.Struct(">QQ")
SUFFIX: Final = ".times"

STEP_MS: Final = 100
_FINE_BYTES: Final = 8 << 20
_MEDIUM_BYTES: Final = 16 << 20


def step_ms(size: int) -> int:
    """Return the least time between two entries for an index of `size` bytes; milliseconds.

    The first 14 hours of output without a pause have 0.1 s, the next six days a second, the rest a minute.
    """
    if size < _FINE_BYTES:
        return STEP_MS
    return 1000 if size < _MEDIUM_BYTES else 60_000


class LogTimes:
    """The index that is written beside a log, by one writer at a time."""

    def __init__(self, log: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(log.with_name(log.stem + SUFFIX), flags, 0o600)
        self._size = os.fstat(self._file).st_size
        self._due_ms = 0

    def mark(self, offset: int, now_ms: int | None = None) -> None:
        """Note that the bytes from `offset` on came now, or at that time in milliseconds since the epoch.

        A full disk leaves them with the time before.
        """
        now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        # A clock that was set back makes an entry too.
        if self._due_ms - step_ms(self._size) <= now_ms < self._due_ms:
            return
        try:
            self._size += os.write(self._file, ENTRY.pack(offset, now_ms))
        except OSError:
            return
        self._due_ms = now_ms + step_ms(self._size)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
