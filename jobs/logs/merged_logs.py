"""Logs of several replicas as one, line by line in the order of time.

A cursor is one offset for each replica: whoever goes on from it gets each line once, also one that comes
late, because it was on its way from another node.  A window is found by the logs' indices of times and then
merged line by line, so that memory depends on its size and not on that of the logs.
"""

from __future__ import annotations

import heapq
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.logs import log_store, log_times
from jobs.logs.log_times import LogMoment
from jobs.models import LogStream

MOST_LINES: Final = 2000
"""Lines of one window."""

LONGEST_LINE: Final = 64 * 1024
"""Bytes; a longer line becomes several."""

LEAST_BLOCK: Final = 4 * 1024
MOST_BLOCK: Final = 64 * 1024
AT_ONCE: Final = 4 * 1024 * 1024
"""Bytes of all logs together that are read ahead."""

SETTLE_MS: Final = 1000
"""Newer lines of a growing log wait: another replica's of the same moment may not be there yet."""

Cursor = tuple[int, ...]
"""The offset in each log."""


@dataclass(frozen=True, slots=True)
class MergedLine:
    """A line, or a part of a too long one, without its end; `position` is of its log among those merged.

    It covers the bytes from `offset` to `end`, and came at `ms` (Unix time in milliseconds; 0: unknown).
    """

    ms: int
    position: int
    offset: int
    end: int
    text: bytes


@dataclass(frozen=True, slots=True)
class MergedWindow:
    """Lines, and the cursors before the first and after the last."""

    lines: list[MergedLine]
    before: Cursor
    after: Cursor


def sizes(streams: Sequence[LogStream | None]) -> Cursor:
    """Return the cursor behind everything that there is.  None is a log that has not begun."""
    return tuple(_size(stream) for stream in streams)


def _size(stream: LogStream | None) -> int:
    try:
        return log_store.read(stream, 0, 0).size if stream is not None else 0
    except log_store.Unsafe:
        return 0


def read_after(
    streams: Sequence[LogStream | None], start: Cursor, limit: int, *, has_open_lines: bool = False
) -> MergedWindow:
    """Return about `limit` bytes of lines from `start` on.

    Of a log that grows they are whole and a second old, unless `has_open_lines` says to take all there is.
    """
    return _merge(streams, start, sizes(streams), limit, has_open_lines=has_open_lines)


def read_before(streams: Sequence[LogStream | None], end: Cursor, limit: int) -> MergedWindow:
    """Return about `limit` bytes of lines that end at `end`."""
    start = _start_of(streams, end, limit)
    # All of it, so that nothing is missing between this window and the one after it.
    return _merge(streams, start, end, sum(end) - sum(start), most_lines=None)


def iterate_lines(streams: Sequence[LogStream | None]) -> Iterator[MergedLine]:
    """Yield every line that there is now, unfinished ones too."""
    end = sizes(streams)
    return _merge_lines(streams, tuple(0 for _ in end), end, has_open_lines=True)


def cursor_at(streams: Sequence[LogStream | None], position: int, offset: int) -> Cursor:
    """Return the cursor before the line at `offset` of one log: by time, where the others stand then."""
    end = sizes(streams)
    stream = streams[position]
    moments = log_times.find_times(stream, offset, offset + 1) if stream is not None else []
    ms = time_at(moments, offset)
    found = [_offset_at(each, ms, end[number]) for number, each in enumerate(streams)]
    found[position] = max(0, min(offset, end[position]))
    return tuple(found)


def _offset_at(stream: LogStream | None, ms: int, end: int) -> int:
    """Return where the first line begins that came at `ms` or later; `end` where none did."""
    if stream is None or not ms:
        return 0
    with log_times.open_times(stream) as index:
        # What has no times comes before all that has.
        offset = index.offset_at(ms) if index else None
    return next_line(stream, end if offset is None else offset, end)


# --- the beginning of a window ---------------------------------------------------------------------------


def _start_of(streams: Sequence[LogStream | None], end: Cursor, limit: int) -> Cursor:
    """Return where the last `limit` bytes before `end` begin, by time."""
    bounds = [_Bounds(stream, at, limit) for stream, at in zip(streams, end, strict=True)]
    spans = [(each.moments[0].ms, each.moments[-1].ms) for each in bounds if each.moments]
    low, high = min((first for first, _ in spans), default=0), max((last for _, last in spans), default=0)

    def offsets_at(ms: int) -> Cursor:
        return tuple(each.offset_at(ms) for each in bounds)

    while high - low > 1:
        middle = (low + high) // 2
        if sum(end) - sum(offsets_at(middle)) > limit:
            low = middle
        else:
            high = middle
    wanted = offsets_at(low if sum(end) - sum(offsets_at(low)) <= limit else high)
    if 0 < sum(end) - sum(wanted) <= 2 * limit:
        start = tuple(map(next_line, streams, wanted, end))
        if start != end:
            return start
    # Much came at the same moment, or at no known one: a share of each.
    share = max(1, limit // max(1, sum(1 for at in end if at)))
    return tuple(_line_at(stream, at - share) for stream, at in zip(streams, end, strict=True))


class _Bounds:
    """The times of the last bytes of one log before `end`."""

    def __init__(self, stream: LogStream | None, end: int, limit: int) -> None:
        self._end = end
        self.moments: list[LogMoment] = []
        if stream is not None and end:
            self.moments = log_times.find_times(stream, max(0, end - limit), end)

    def offset_at(self, ms: int) -> int:
        """Return the first byte that came at `ms` or later; the first of all without times."""
        if not self.moments:
            return 0
        at = bisect_left(self.moments, ms, key=lambda each: each.ms)
        return min(self.moments[at].offset, self._end) if at < len(self.moments) else self._end


def _line_at(stream: LogStream | None, offset: int) -> int:
    """Return where the line at `offset` begins, or `offset` itself in a too long one."""
    if stream is None or offset <= 0:
        return 0
    reach = max(0, offset - LONGEST_LINE)
    newline = _read(stream, reach, offset - reach).data.rfind(b"\n")
    return reach + newline + 1 if newline >= 0 or not reach else offset


def next_line(stream: LogStream | None, offset: int, end: int) -> int:
    """Return where the first line begins that begins at `offset` or behind it."""
    if stream is None or offset <= 0 or offset >= end:
        return max(0, min(offset, end))
    data = _read(stream, offset - 1, min(LONGEST_LINE, end - offset + 1)).data
    newline = data.find(b"\n")
    return offset + newline if newline >= 0 else min(end, offset + len(data))


def _read(stream: LogStream, offset: int, limit: int) -> log_store.Slice:
    try:
        return log_store.read(stream, offset, limit)
    except log_store.Unsafe:
        return log_store.Slice(b"", 0, 0, 0, LogStream.State.GONE)


# --- merging ---------------------------------------------------------------------------------------------


def _merge(
    streams: Sequence[LogStream | None],
    start: Cursor,
    end: Cursor,
    limit: int,
    most_lines: int | None = MOST_LINES,
    *,
    has_open_lines: bool = False,
) -> MergedWindow:
    lines: list[MergedLine] = []
    after, size = list(start), 0
    for line in _merge_lines(streams, start, end, has_open_lines=has_open_lines):
        lines.append(line)
        after[line.position] = line.end
        size += line.end - line.offset
        if size >= limit or len(lines) == most_lines:
            break
    return MergedWindow(lines, start, tuple(after))


def _merge_lines(
    streams: Sequence[LogStream | None], start: Cursor, end: Cursor, *, has_open_lines: bool
) -> Iterator[MergedLine]:
    block = max(LEAST_BLOCK, min(MOST_BLOCK, AT_ONCE // max(1, len(streams))))
    sources = [
        _lines(stream, position, start[position], end[position], block, has_open_lines=has_open_lines)
        for position, stream in enumerate(streams)
        if stream is not None and start[position] < end[position]
    ]
    return heapq.merge(*sources, key=lambda each: (each.ms, each.position, each.offset))


def _lines(
    stream: LogStream, position: int, start: int, end: int, block: int, *, has_open_lines: bool
) -> Iterator[MergedLine]:
    """Yield the lines of one log from `start` to `end`."""
    growing = stream.state == LogStream.State.OPEN and not has_open_lines
    newest = time.time_ns() // 1_000_000 - SETTLE_MS
    at, rest, earliest = start, b"", 0
    while at + len(rest) < end:
        found = _read(stream, at + len(rest), min(block, end - at - len(rest)))
        if not found.data:
            break
        if found.next_offset - found.offset != len(found.data):  # a notice for what a cap left out
            yield MergedLine(earliest, position, at, found.next_offset, rest + found.data.strip(b"\n"))
            at, rest = found.next_offset, b""
            continue
        data = rest + found.data
        moments = log_times.find_times(stream, at, at + len(data))
        for line in log_times.split_lines(data):
            is_whole = line.endswith(b"\n")
            if not is_whole and len(line) < LONGEST_LINE:
                break
            # A clock that was set back, or bytes of an unknown time, don't go before the line before them.
            earliest = max(earliest, time_at(moments, at))
            if growing and newest < earliest <= newest + SETTLE_MS:
                return
            yield MergedLine(earliest, position, at, at + len(line), line.removesuffix(b"\n"))
            at += len(line)
        rest = data[len(data) - (found.next_offset - at) :]
    if rest and (not growing or at + len(rest) < _size(stream)):
        moments = log_times.find_times(stream, at, at + len(rest))
        yield MergedLine(max(earliest, time_at(moments, at)), position, at, at + len(rest), rest)


def time_at(moments: Sequence[LogMoment], offset: int) -> int:
    """Return when the byte at `offset` came; Unix time in milliseconds, 0 if that is not known."""
    at = bisect_right(moments, offset, key=lambda each: each.offset)
    return moments[at - 1].ms if at else 0
