"""Lines of a log, from its bytes: each with its offset, long ones in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

LONGEST_LINE: Final = 64 * 1024
"""Bytes; a longer line becomes several records."""


class Rest(Enum):
    """Meaning of bytes without an end of a line at the end of the data."""

    WAITS = auto()
    """The rest of the line is not there yet: nothing is made of them."""

    CONTINUES = auto()
    """They are a piece of a long line."""

    ENDS = auto()
    """They are the log's last line."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line without its newline, from `offset` up to `end`, the offset of what follows.

    Where `is_partial`, the line goes on in the next one.
    """

    offset: int
    end: int
    text: str
    is_partial: bool = False


def split(data: bytes, offset: int, rest: Rest) -> Iterator[LogLine]:
    """Yield the lines of `data`, which begins at `offset`; bytes that are no UTF-8 are replaced."""
    for start, stop, end, is_partial in _bounds(data, rest):
        text = data[start:stop].decode("utf-8", "replace")
        yield LogLine(offset + start, offset + end, text, is_partial)


def _bounds(data: bytes, rest: Rest) -> Iterator[tuple[int, int, int, bool]]:
    """Yield for each line its beginning, the end of its text, the next one's beginning, and if it goes on."""
    at = 0
    while at < len(data):
        newline = data.find(b"\n", at, at + LONGEST_LINE + 1)
        if newline >= 0:
            yield at, newline, newline + 1, False
            at = newline + 1
        elif len(data) - at > LONGEST_LINE:
            cut = _find_cut(data, at + LONGEST_LINE)
            yield at, cut, cut, True
            at = cut
        else:
            if rest is not Rest.WAITS:
                yield at, len(data), len(data), rest is Rest.CONTINUES
            return


def _find_cut(data: bytes, at: int) -> int:
    """Return the beginning of the character that the byte at `at` belongs to; `at` where that is no UTF-8."""
    for start in range(at, at - 4, -1):
        if data[start] & 0xC0 != 0x80:
            return start
    return at
