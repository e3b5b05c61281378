"""Slices of several logs by time: all that came between two moments, of about a number of bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from jobs.logs import log_times
from jobs.logs.log_times import LogMoment
from jobs.logs.merged_logs import Cursor, next_line
from jobs.models import LogStream


def slice_after(streams: Sequence[LogStream | None], start: Cursor, end: Cursor, limit: int) -> Cursor:
    """Return a cursor about `limit` bytes behind `start`: what is before it came before what is after it."""
    bounds = [_Reach(*each, limit) for each in zip(streams, start, end, strict=True)]
    timeless = next((each for each in bounds if each.is_timeless), None)
    if timeless is not None:
        # What has no times comes before all that has.
        wanted = tuple(each.share_end(limit) if each is timeless else each.start for each in bounds)
    else:
        wanted = _slice_by_time(bounds, limit)
    return tuple(map(next_line, streams, wanted, end))


def _slice_by_time(bounds: Sequence[_Reach], limit: int) -> Cursor:
    spans = [(each.moments[0].ms, each.moments[-1].ms) for each in bounds if each.moments]
    low, high = min((first for first, _ in spans), default=0), max((last for _, last in spans), default=0) + 1

    def size_at(ms: int) -> int:
        return sum(each.offset_at(ms) - each.start for each in bounds)

    if size_at(high) <= limit:
        low = high
    while high - low > 1:
        middle = (low + high) // 2
        if size_at(middle) <= limit:
            low = middle
        else:
            high = middle
    if size_at(low):
        return tuple(each.offset_at(low) for each in bounds)
    # More than a slice came at the same moment: a part of the first log's.
    first = next((each for each in bounds if each.moments and each.moments[0].ms <= low), None)
    return tuple(
        min(each.share_end(limit), each.offset_at(low + 1)) if each is first else each.start
        for each in bounds
    )


class _Reach:
    """The times of the bytes of one log from `start` on, as far as a slice may reach."""

    def __init__(self, stream: LogStream | None, start: int, end: int, limit: int) -> None:
        self.start = start
        self._end = max(start, end)
        self._reach = min(self._end, start + limit + 1)
        self.moments: list[LogMoment] = []
        if stream is not None and start < self._reach:
            self.moments = log_times.find_times(stream, start, self._reach)
        if len(self.moments) == log_times.MOST_ENTRIES:
            self._reach = max(start + 1, self.moments[-1].offset)
        self.is_timeless = start < self._end and not self.moments

    def offset_at(self, ms: int) -> int:
        """Return the first byte that came at `ms` or later."""
        at = bisect_left(self.moments, ms, key=lambda each: each.ms)
        if at == len(self.moments):
            return self._reach
        return min(self._reach, max(self.start, self.moments[at].offset))

    def share_end(self, share: int) -> int:
        """Return where the next `share` bytes end."""
        return min(self._end, self.start + share)
