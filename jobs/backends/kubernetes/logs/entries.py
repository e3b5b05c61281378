"""Entries of a container's log, as a kubelet tells it with times.

An entry is a time, a space and bytes: a line, or a part of a line that is longer than what container runtimes
write at once.  Kubelets before 1.27 put a time before each part of a line, later ones before the line alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

PART: Final = 8192
"""A long line is written in parts of so many bytes by CRI-O, of twice as many by containerd and Docker."""

_TIME: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) ")
_LONGEST_TIME: Final = 36
_LONGEST_MESSAGE: Final = 500


class NotALog(Exception):
    """The kubelet says something else, as that the file is gone."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of an entry, and its time; `is_first` tells whether it begins the entry."""

    time: str
    data: bytes
    is_first: bool


class EntryReader:
    """Splits what comes from a kubelet into entries, whose pieces are passed on as they come."""

    def __init__(self) -> None:
        self._buffer = b""
        self._time = ""
        self._is_in_line = False
        self._length = 0
        """Bytes since the last time."""

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield pieces; a time that has not come to its end is kept, for ever where nothing comes behind it.

        Raises NotALog.
        """
        buffer, at = self._buffer + data, 0
        while at < len(buffer):
            is_first = False
            if not self._is_in_line or (self._length and self._length % PART == 0):
                found = _TIME.match(buffer, at)
                is_short = len(buffer) - at < _LONGEST_TIME and buffer.find(b"\n", at) < 0
                if found is None and is_short:
                    break
                if found is None and not self._is_in_line:
                    raise NotALog(buffer[at : at + _LONGEST_MESSAGE].decode(errors="replace").strip())
                if found is not None and self._can_be(found[1].decode()):
                    self._time, self._length, is_first = found[1].decode(), 0, True
                    at = found.end()
            room = PART - self._length % PART
            newline = buffer.find(b"\n", at, at + room)
            end = newline + 1 if newline >= 0 else min(at + room, len(buffer))
            self._is_in_line = newline < 0
            self._length += end - at
            if end > at or is_first:
                yield Piece(self._time, buffer[at:end], is_first)
            at = end
        self._buffer = buffer[at:]

    def _can_be(self, time: str) -> bool:
        """Return whether a time may be the next entry's: what looks like one may be the line's own bytes."""
        return not self._is_in_line or time >= self._time
