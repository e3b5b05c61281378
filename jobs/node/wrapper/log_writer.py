"""The output of a replica, on its way into its log.

The replica has one end of a pipe, its wrapper the other: so nothing that the replica does to its descriptors
reaches the file, and how much is written, and how fast, is held within limits.  The wrapper is the first
process of the replica's namespace, so there is no replica without a reader.  The agent keeps the reading
end too: what is in the pipe when the wrapper is killed reaches the log all the same.  The kernel moves what
is kept (splice): a byte leaves the pipe when it is in the file, so a killed wrapper takes none with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from jobs.node.wrapper.log_times import LogTimes

_PIPE_BYTES: Final = 1 << 20
_PIECES: Final = 16
"""So many are moved before somebody else has a turn."""

_BURST_S: Final = 60
"""A replica may write in an instant what its rate allows in so many seconds."""

_TAIL_BYTES: Final = 64 << 10
"""Of what is dropped the end is kept, and added once writing goes on, or with the end of the replica."""

_LOOK_BYTES: Final = 16 << 20
_LOOK_S: Final = 1.0
"""After so many bytes, or so long while something is dropped, the limits are looked at again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes in all, bytes a second, and bytes that stay free on the disk; 0 is no limit."""

    most: int = 0
    rate: int = 0
    keep_free: int = 0


class Pipe(NamedTuple):
    """The two descriptors of a replica's pipe."""

    reader: int
    writer: int


NO_PIPE: Final = Pipe(-1, -1)


def open_pipe(owner: tuple[int, int]) -> Pipe:
    """Make a pipe that a user and group may open anew for writing, as `/dev/stderr`."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with contextlib.suppress(OSError):  # a user may have only so many large ones
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    os.fchmod(writer, 0o200)
    if owner[0] != os.geteuid():
        os.fchown(writer, *owner)
    return Pipe(reader, writer)


class LogWriter:
    """Moves what comes into the replica's end of a pipe, `stream`, to the file; `fd` is to be polled.

    `times` get to know when it came.
    """

    def __init__(self, file: int, limits: Limits, pipe: Pipe, times: LogTimes | None = None) -> None:
        self._file, self._limits, self._times = file, limits, times
        self.fd, self.stream = pipe
        self._buffer = bytearray()  # most wrappers never need it
        self.see_size()
        self._allowed = float(limits.rate * _BURST_S)
        self._counted_at = time.monotonic()
        self._unlooked = _LOOK_BYTES
        self._why = ""
        self._dropped = 0
        self._tail = b""
        self._look_at = 0.0

    def see_size(self) -> None:
        """See how long the log is, as another process may have written to it."""
        self._size = os.fstat(self._file).st_size

    def due_at(self) -> float | None:
        """Return when `pump` is to be called although nothing comes (CLOCK_MONOTONIC)."""
        return self._look_at if self._why and self._why != "size" else None

    def pump(self) -> None:
        """Move what has come by now."""
        for _ in range(_PIECES):
            if not self._move():
                break
        if self._why and time.monotonic() >= self._look_at:
            self._look_again()

    def add(self, line: bytes) -> None:
        """Write what came another way, within the same limits."""
        piece = memoryview(line)
        self._why = self._why or self._objection(len(piece))
        if self._why:
            self._drop(piece)
        else:
            self._write(piece)

    def drain(self) -> None:
        """Move all that dead processes have left."""
        while self._move():
            pass

    def finish(self) -> None:
        """Say what was dropped last: nothing comes any more."""
        self.drain()
        if self._why:
            self._go_on()

    def size(self) -> int:
        """How long the log is."""
        self.drain()
        return self._size

    def _move(self) -> bool:
        (count,) = struct.unpack("i", fcntl.ioctl(self.fd, termios.FIONREAD, bytes(4)))
        if not count:
            return False
        self._why = self._why or self._objection(count)
        if self._why:
            self._drop(self._read(count))
        else:
            self._keep(count)
        return True

    def _read(self, count: int) -> memoryview:
        if not self._buffer:
            self._buffer = bytearray(_PIPE_BYTES)
        piece = memoryview(self._buffer)[:count]
        return piece[: os.readv(self.fd, [piece])]

    def _objection(self, count: int) -> str:
        """Why so many bytes more are not written."""
        limits = self._limits
        if limits.most and self._size + count > limits.most:
            return "size"
        if limits.rate and self._refill() < count:
            return "rate"
        if limits.keep_free and self._unlooked >= _LOOK_BYTES:
            self._unlooked = 0
            found = os.fstatvfs(self._file)
            if found.f_bavail * found.f_frsize < limits.keep_free:
                self._unlooked = _LOOK_BYTES
                return "disk"
        return ""

    def _refill(self) -> float:
        now, rate = time.monotonic(), self._limits.rate
        self._allowed = min(self._allowed + (now - self._counted_at) * rate, rate * _BURST_S)
        self._counted_at = now
        return self._allowed

    def _keep(self, count: int) -> None:
        os.lseek(self._file, 0, os.SEEK_END)
        try:
            self._add(os.splice(self.fd, self._file, count))
        except OSError:  # the disk is full, or the file system can't
            self._write(self._read(count))

    def _write(self, piece: memoryview | bytes) -> None:
        rest = memoryview(piece)
        os.lseek(self._file, 0, os.SEEK_END)
        while rest:
            try:
                count = os.write(self._file, rest)
            except OSError:  # the disk is full, or broken
                self._why = "disk"
                self._drop(rest)
                return
            self._add(count)
            rest = rest[count:]

    def _add(self, count: int) -> None:
        if self._times is not None:
            self._times.mark(self._size)
        self._size += count
        self._allowed -= count
        self._unlooked += count

    def _drop(self, piece: memoryview) -> None:
        if not self._dropped:
            self._look_at = time.monotonic() + _LOOK_S
        self._dropped += len(piece)
        self._tail = (self._tail + bytes(piece[-_TAIL_BYTES:]))[-_TAIL_BYTES:]

    def _look_again(self) -> None:
        """Go on writing once nothing speaks against a second of it."""
        self._look_at = time.monotonic() + _LOOK_S
        if self._why != "size" and not self._objection(max(self._limits.rate, _TAIL_BYTES)):
            self._go_on()

    def _go_on(self) -> None:
        tail = self._tail.partition(b"\n")[2] or self._tail if self._dropped > len(self._tail) else self._tail
        lost = self._dropped - len(tail)
        told = f"\n[{_amount(lost)} dropped here: {self._words()}]\n" if lost else ""
        self._why, self._dropped, self._tail = "", 0, b""
        self._write(told.encode() + tail)

    def _words(self) -> str:
        limits = self._limits
        return {
            "size": f"the log has reached {_amount(limits.most)}",
            "rate": f"more than {_amount(limits.rate)} a second",
            "disk": f"the console's disk has less than {_amount(limits.keep_free)} free",
        }[self._why]


def _amount(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{round(count / size, 1):g} {unit}"
    return f"{count} bytes"


_GET_FLAGS: Final = 0x80086601
_SET_FLAGS: Final = 0x40086602
_APPEND_ONLY: Final = 0x20


def open_log(path: Path) -> int:
    """Make or open the log; not with O_APPEND, into which the kernel moves nothing by itself."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def unmark_append_only(path: Path) -> None:
    """Let a log be removed that an earlier release marked as append-only; absent is fine."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            _clear_flag(fd)
        finally:
            os.close(fd)


def _clear_flag(fd: int) -> None:
    with contextlib.suppress(OSError):  # not every file system knows it, and not every user may
        (flags,) = struct.unpack("i", fcntl.ioctl(fd, _GET_FLAGS, bytes(4)))
        if flags & _APPEND_ONLY:
            fcntl.ioctl(fd, _SET_FLAGS, struct.pack("i", flags & ~_APPEND_ONLY))
