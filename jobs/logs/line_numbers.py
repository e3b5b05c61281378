"""Numbers of lines in logs, counted from the beginning of a log and remembered at some places."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from operator import itemgetter
from typing import Final

from jobs.logs import log_search
from jobs.models import LogStream

STEP: Final = 4 * 1024 * 1024
"""Bytes between two places at which the number of lines is remembered."""

MOST_LOGS: Final = 256
COUNT_S: Final = 1.0
"""Seconds after which a count is given up; asked again it goes on from there."""


class _Places:
    """Offsets of one log, each with the number of newlines before it."""

    def __init__(self) -> None:
        self.known = [(0, 0)]

    def add(self, offset: int, count: int) -> None:
        with _LOCK:
            if offset >= self.known[-1][0] + STEP:
                self.known.append((offset, count))


_LOCK: Final = threading.Lock()
_places: OrderedDict[tuple[int, bool], _Places] = OrderedDict()


def _places_of(stream: LogStream) -> _Places:
    """Return what is known of a log; a stored one may have a notice for bytes that were left out."""
    key = (stream.pk, stream.sealed)
    with _LOCK:
        found = _places.setdefault(key, _Places())
        _places.move_to_end(key)
        while len(_places) > MOST_LOGS:
            _places.popitem(last=False)
    return found


def line_at(stream: LogStream, offset: int, seconds: float = COUNT_S) -> int | None:
    """Return the number of the line at a byte; None if counting took too long.  Raises `log_store.Unsafe`."""
    places, deadline = _places_of(stream), time.monotonic() + seconds
    start, count = places.known[bisect_right(places.known, offset, key=itemgetter(0)) - 1]
    for at, data in log_search.pieces(stream, start):
        places.add(at, count)
        if at + len(data) > offset:
            return count + data[: max(0, offset - at)].count(b"\n") + 1
        count += data.count(b"\n")
        if time.monotonic() > deadline:
            return None
    return count + 1


def offset_of(stream: LogStream, line: int, seconds: float = COUNT_S) -> int | None:
    """Return the first byte of a line, or of the last line if there are fewer; None as `line_at`."""
    places, deadline = _places_of(stream), time.monotonic() + seconds
    last, count = places.known[max(0, bisect_left(places.known, line - 1, key=itemgetter(1)) - 1)]
    for at, data in log_search.pieces(stream, last):
        places.add(at, count)
        here = data.count(b"\n")
        if line > 1 and count + here >= line - 1:
            return at + _after_newline(data, line - 1 - count)
        if line <= 1:
            return 0
        count += here
        if here:
            newline = data.rfind(b"\n", 0, len(data) - 1)
            last = at + newline + 1 if newline >= 0 else last
        if time.monotonic() > deadline:
            return None
    return last


def _after_newline(data: bytes, number: int) -> int:
    """Return the position after the newline of that number, counted from 1."""
    at = -1
    for _each in range(number):
        at = data.find(b"\n", at + 1)
    return at + 1
