"""The copy of a replica's output in its attempt's folder.

    <name>.output      the output, byte by byte
    <name>.times       when it came (`jobs.node.wrapper.log_times`)
    <name>.position    from where to go on: the time of an entry, and at which byte of the output that begins;
                       behind them "complete" where nothing comes any more

Whoever writes it holds a lock on it, which ends with the process.  What was written after the position was
noted is told by the kubelet again, compared and skipped: so a copy goes on after any interruption, without a
gap or a repeat, as long as the kubelet still has the entry.  It has the newest file alone, and begins another
one at a size (10 MiB by default).  Where the entry is gone, something may be missing, and the copy says so.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from jobs.backends.kubernetes.logs.entries import EntryReader, Piece
from jobs.backends.remote import attempts
from jobs.node import frames
from jobs.node.wrapper.log_times import LogTimes

NOTE_S: Final = 0.25
"""A position is noted so often while output comes."""

LATE_MS: Final = 1000
"""An entry so much later than the position shows that the one there is gone: they are nearly in order."""

UNBROKEN_MS: Final = 9000
"""Kubelets begin another file at most every ten seconds.  So an entry no later than this after the last one
of a file that was read to its end is the next one."""

GAP: Final = b"\n[output may be missing here: the node rotated the log before it was read]\n"

_COMPLETE: Final = "complete"
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The time of an entry, and the byte of the output at which it begins; "" and 0 at the beginning."""

    time: str = ""
    offset: int = 0
    is_complete: bool = False


def read_position(log: Path) -> LogPosition:
    """Return from where the copy of a log goes on."""
    words = (attempts.read_text(_position_path(log)) or "").split()
    if len(words) < 2:
        return LogPosition()
    return LogPosition("" if words[0] == "-" else words[0], int(words[1]), words[2:] == [_COMPLETE])


class LogFile:
    """A copy that this process writes."""

    def __init__(self, log: Path, file: int) -> None:
        self._log, self._file = log, file
        self._times = LogTimes(log)
        self.position = read_position(log)
        self._size = os.fstat(file).st_size
        if self._size < self.position.offset:  # the machine has lost the last bytes
            self.position = LogPosition()
        self._noted_at = time.monotonic()

    @property
    def since(self) -> str:
        """The time from which the kubelet has to tell the log."""
        return self.position.time

    def copy(self, chunks: Iterable[bytes], *, is_unbroken: bool = False) -> None:
        """Append what a kubelet tells of the log since `since`.  Raises NotALog, and what `chunks` raises.

        `is_unbroken` tells that what it told before was read to the end of its file.
        """
        reader, skipper = EntryReader(), _Skipper(self.position, self._read, is_unbroken=is_unbroken)
        try:
            for chunk in chunks:
                self._append(skipper.pass_new(reader.feed(chunk)))
        finally:
            self._append(skipper.rest())
            self._note()

    def complete(self) -> None:
        """Note that nothing comes any more."""
        position = self.position
        self.position = LogPosition(position.time, position.offset, is_complete=True)
        self._note()

    def close(self) -> None:
        """Release the copy to others."""
        self._times.close()
        os.close(self._file)

    def _append(self, pieces: Iterator[Piece]) -> None:
        size, data, position = self._size, [], self.position
        for piece in pieces:
            if piece.is_first and piece.time > position.time:
                position = LogPosition(piece.time, size)
                self._times.mark(size, _milliseconds(piece.time))
            data.append(piece.data)
            size += len(piece.data)
        if data:
            frames.write_all(self._file, b"".join(data))
        self._size, self.position = size, position
        if time.monotonic() - self._noted_at > NOTE_S:
            self._note()

    def _note(self) -> None:
        position = self.position
        words = [position.time or "-", str(position.offset), *([_COMPLETE] if position.is_complete else [])]
        attempts.write_text(_position_path(self._log), " ".join(words))
        self._noted_at = time.monotonic()

    def _read(self, offset: int, length: int) -> bytes:
        return os.pread(self._file, length, offset)


@contextmanager
def open_log(log: Path) -> Iterator[LogFile | None]:
    """Open the copy of a log for writing; None where it is complete, or somebody else writes it."""
    log.parent.mkdir(mode=0o700, exist_ok=True)
    file = os.open(log, _FLAGS, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        yield None
        return
    made = LogFile(log, file)
    try:
        yield None if made.position.is_complete else made
    finally:
        made.close()


class _Skipper:
    """Passes on what comes after the bytes that the copy has already."""

    def __init__(
        self, position: LogPosition, read: Callable[[int, int], bytes], *, is_unbroken: bool
    ) -> None:
        self._read = read
        self._is_unbroken = is_unbroken
        self._at = position.offset
        self._time = position.time
        self._is_found = not position.time
        self._is_new = False
        self._later: list[Piece] = []

    def pass_new(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Yield what is new among these pieces."""
        for piece in pieces:
            if not self._is_found:
                yield from self._look(piece)
            else:
                yield from self._skip(piece)

    def rest(self) -> Iterator[Piece]:
        """Yield what came when the entry at the position did not."""
        if self._later:
            yield from self._pass_later()

    def _look(self, piece: Piece) -> Iterator[Piece]:
        """Look for the entry at the position: what comes before it is copied already."""
        if piece.time == self._time:
            self._is_found = True
            self._later.clear()
            yield from self._skip(piece)
        elif piece.time > self._time:
            self._later.append(piece)
            if self._distance(piece) > LATE_MS:
                yield from self._pass_later()

    def _distance(self, piece: Piece) -> int:
        """Return the milliseconds from the position's entry to a piece."""
        return _milliseconds(piece.time) - _milliseconds(self._time)

    def _pass_later(self) -> Iterator[Piece]:
        """Yield all that came, behind a notice where something may have come before it."""
        self._is_found = self._is_new = True
        later, self._later = self._later, []
        if not self._is_unbroken or self._distance(later[0]) > UNBROKEN_MS:
            yield Piece(self._time, GAP, is_first=False)
        yield from later

    def _skip(self, piece: Piece) -> Iterator[Piece]:
        """Yield what of a piece the copy does not have."""
        if self._is_new:
            yield piece
            return
        known = self._read(self._at, len(piece.data))
        if piece.data.startswith(known):
            self._at += len(known)
            self._is_new = len(known) < len(piece.data)
            if self._is_new:
                yield Piece(piece.time, piece.data[len(known) :], piece.is_first and not known)
        else:
            self._is_new = True
            yield Piece(piece.time, GAP, is_first=False)
            yield piece


def _position_path(log: Path) -> Path:
    return log.with_suffix(".position")


def _milliseconds(text: str) -> int:
    """Return a time (RFC 3339) in milliseconds since the epoch."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)
