"""Searches through the logs of several replicas at once; what is found comes in the order of time.

The logs are taken in slices of time, so that the first matches come first whichever log they are in, and each
slice is searched by one grep.  A slice grows while little is found, and is cut where too much is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.logs import log_store, log_times, merged_logs, pattern_search
from jobs.logs.log_search import PIECE, SEARCH_S
from jobs.logs.merged_logs import Cursor, MergedLine
from jobs.logs.merged_slices import slice_after
from jobs.models import LogStream

LEAST_SLICE: Final = 64 * 1024
FIRST_SLICE: Final = 256 * 1024
MOST_SLICE: Final = 8 * 1024 * 1024
"""Bytes of all logs together that are searched at a time."""

MOST_IN_SLICE: Final = 20_000
"""Matches of one slice; where there are more, a smaller one is taken."""


@dataclass(frozen=True, slots=True)
class MergedMatches:
    """Matching lines by time, the cursor to go on from (None: all was searched), and how far that is.

    `searched` and `size` are bytes of all logs together.
    """

    found: list[MergedLine]
    next: Cursor | None
    searched: int
    size: int


def search(
    streams: Sequence[LogStream | None],
    pattern: str,
    start: Cursor,
    limit: int,
    seconds: float = SEARCH_S,
) -> MergedMatches:
    """Find the lines from `start` on that match an extended regular expression, ignoring the case.

    It returns after about `seconds`, or `limit` matches.  Raises `pattern_search.BadPattern` and
    `pattern_search.PatternTooSlow`.
    """
    deadline = time.monotonic() + seconds
    end = merged_logs.sizes(streams)
    at, found, size = tuple(map(min, start, end)), list[MergedLine](), FIRST_SLICE
    while at != end:
        stop = slice_after(streams, at, end, size)
        matches = _search_slice(streams, pattern, at, stop, size, seconds)
        if matches is None:
            size = max(LEAST_SLICE, size // 8)
            continue
        room = limit - len(found)
        found += matches[:room]
        if len(matches) >= room:
            at = _first_of_each(matches[room:], stop)
            return MergedMatches(found, at if at != end else None, sum(at), sum(end))
        at, size = stop, min(MOST_SLICE, size * 2)
        if time.monotonic() > deadline and at != end:
            return MergedMatches(found, at, sum(at), sum(end))
    pattern_search.translate(pattern)  # a wrong expression is wrong in an empty log too
    return MergedMatches(found, None, sum(end), sum(end))


def _first_of_each(rest: Sequence[MergedLine], stop: Cursor) -> Cursor:
    """Return the cursor before the matches that were left, and behind everything else before `stop`."""
    cursor = list(stop)
    for line in reversed(rest):
        cursor[line.position] = line.offset
    return tuple(cursor)


def _search_slice(
    streams: Sequence[LogStream | None],
    pattern: str,
    start: Cursor,
    stop: Cursor,
    size: int,
    seconds: float,
) -> list[MergedLine] | None:
    """Return the matches between two cursors, by time; None where there are too many."""
    places: list[tuple[int, int]] = []
    most = MOST_IN_SLICE if size > LEAST_SLICE else sum(stop) - sum(start) + 1
    blocks = _blocks(streams, start, stop, places)
    matches = pattern_search.search_blocks(blocks, pattern, most, seconds)
    if len(matches) >= MOST_IN_SLICE and size > LEAST_SLICE:
        return None
    moments: dict[int, list[log_times.LogMoment]] = {}
    found = []
    for match in matches:
        position, first = places[match.block]
        offset = first + match.position
        stream = streams[position]
        if position not in moments and stream is not None:
            moments[position] = log_times.find_times(stream, start[position], stop[position])
        ms = merged_logs.time_at(moments[position], offset)
        found.append(MergedLine(ms, position, offset, offset, match.text.encode()))
    return sorted(found, key=lambda each: (each.ms, each.position, each.offset))


def _blocks(
    streams: Sequence[LogStream | None], start: Cursor, stop: Cursor, places: list[tuple[int, int]]
) -> Iterator[bytes]:
    """Yield the bytes between two cursors; add the log and the offset of each block to `places`."""
    for position, stream in enumerate(streams):
        at, ends_line = start[position], True
        while stream is not None and at < stop[position]:
            try:
                found = log_store.read(stream, at, min(PIECE, stop[position] - at))
            except log_store.Unsafe:
                break
            if not found.data:
                break
            places.append((position, at))
            yield found.data
            at, ends_line = found.next_offset, found.data.endswith(b"\n")
        if not ends_line:
            places.append((position, stop[position]))
            yield b"\n"
