"""Times of the lines of a log, from the index that is written beside it (`jobs.node.wrapper.log_times`).

On a Slurm cluster the job itself may write the index, so whatever is in it is taken for a claim: wrong order
gives wrong times and nothing worse.  A log of an earlier release, or of a node without Python, has no times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.core.files.base import ContentFile
from django.core.files.storage import storages

from jobs.logs import log_store
from jobs.models import LogStream
from jobs.node.wrapper.log_times import ENTRY, SUFFIX

MOST_BYTES: Final = 64 << 20
"""More of an index is not read: with its coarser end that is years of output."""

MOST_ENTRIES: Final = 64 * 1024
"""Entries that are read for one part of a log."""

LATEST_MS: Final = 4_102_444_800_000
"""The year 2100: what is beyond is no time."""


@dataclass(frozen=True, slots=True)
class LogMoment:
    """The bytes from `offset` to the next moment's came at `ms`, Unix time in milliseconds."""

    offset: int
    ms: int


class TimeIndex:
    """The index of one log; `read_at` reads at a position a number of bytes."""

    def __init__(self, count: int, read_at: Callable[[int, int], bytes]) -> None:
        self._count, self._read_at = count, read_at

    def __bool__(self) -> bool:
        return self._count > 0

    def between(self, start: int, end: int) -> list[LogMoment]:
        """Return the moments of the bytes from `start` to `end`, at most MOST_ENTRIES."""
        first = max(0, self._first(lambda each: each.offset > start) - 1)
        last = min(self._first(lambda each: each.offset >= end), first + MOST_ENTRIES)
        data = self._read_at(first * ENTRY.size, (last - first) * ENTRY.size)
        whole = len(data) // ENTRY.size * ENTRY.size
        found = (LogMoment(offset, ms) for offset, ms in ENTRY.iter_unpack(data[:whole]))
        return [each for each in found if each.ms < LATEST_MS]

    def offset_at(self, ms: int) -> int | None:
        """Return the first byte that came at `ms` or later; None if none did."""
        position = self._first(lambda each: each.ms >= ms)
        return self._entry(position).offset if position < self._count else None

    def ends(self) -> tuple[int, int]:
        """Return the first and the last time; milliseconds."""
        return self._entry(0).ms, self._entry(self._count - 1).ms

    def _first(self, is_after: Callable[[LogMoment], bool]) -> int:
        """Return the position of the first entry for which `is_after` holds, as for all behind it."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if is_after(self._entry(middle)):
                high = middle
            else:
                low = middle + 1
        return low

    def _entry(self, position: int) -> LogMoment:
        data = self._read_at(position * ENTRY.size, ENTRY.size)
        return LogMoment(*ENTRY.unpack(data)) if len(data) == ENTRY.size else LogMoment(0, 0)


@contextmanager
def open_times(stream: LogStream) -> Iterator[TimeIndex]:
    """Open the index of a log, live or stored; an empty one where there is none."""
    with ExitStack() as opened:
        if (file := _open_live(stream, opened)) is not None:
            size = min(os.fstat(file).st_size, MOST_BYTES)
            yield TimeIndex(size // ENTRY.size, lambda at, length: os.pread(file, length, at))
        else:
            data = _read_stored(stream)
            yield TimeIndex(len(data) // ENTRY.size, lambda at, length: data[at : at + length])


def _open_live(stream: LogStream, opened: ExitStack) -> int | None:
    if stream.sealed or not stream.live_path:
        return None
    try:
        return opened.enter_context(log_store.open_live(_index_path(stream)))
    except (FileNotFoundError, log_store.Unsafe):
        return None  # it was stored and removed since the row was read, or there is none


def _read_stored(stream: LogStream) -> bytes:
    try:
        with storages["logs"].open(_stored_name(stream)) as file:
            return bytes(file.read(MOST_BYTES))
    except FileNotFoundError:
        return b""


def store(stream: LogStream) -> None:
    """Store the index of a log that is being stored; it may be repeated."""
    try:
        with log_store.open_live(_index_path(stream)) as file:
            data = os.pread(file, MOST_BYTES, 0)
    except (FileNotFoundError, log_store.Unsafe):
        return
    discard(stream)
    storages["logs"].save(_stored_name(stream), ContentFile(data))


def discard(stream: LogStream) -> None:
    """Remove the stored index of a log."""
    if storages["logs"].exists(_stored_name(stream)):
        storages["logs"].delete(_stored_name(stream))


def find_times(stream: LogStream, start: int, end: int) -> list[LogMoment]:
    """Return the moments of the bytes from `start` to `end` of a log; none where it has no times."""
    with open_times(stream) as index:
        return index.between(start, end)


def add_times(stream: LogStream, data: bytes, start: int) -> bytes:
    """Put its time before each line that begins in `data`, which begins at the byte `start` of the log.

    RFC 3339, in UTC; what came at an unknown time has none.
    """
    moments = find_times(stream, start, start + len(data))
    if not moments or not data:
        return data
    begins_line = start == 0 or log_store.read(stream, start - 1, 1).data == b"\n"
    pieces, at, position = [], start, 0
    for line in split_lines(data):
        while position + 1 < len(moments) and moments[position + 1].offset <= at:
            position += 1
        if begins_line and moments[position].offset <= at:
            pieces.append(b"%b " % format_time(moments[position].ms).encode())
        pieces.append(line)
        at += len(line)
        begins_line = True
    return b"".join(pieces)


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines of `data`, with their ends: line feeds alone end them."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return [line for line in lines if line]


def format_time(ms: int) -> str:
    """Return a time in RFC 3339, in UTC."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _index_path(stream: LogStream) -> str:
    return stream.live_path.removesuffix(".output") + SUFFIX


def _stored_name(stream: LogStream) -> str:
    return f"{stream.pk}/times"
