"""The words of one `#SBATCH` line, as Slurm takes them apart and as they are written.

Slurm's rules are not a shell's: quotes group, a backslash stands before any character also inside of
quotes, and the first `#` that is neither quoted nor behind a backslash begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SPACES: Final = " \t\n\v\f\r"
"""What C's isspace takes for a blank."""

_PLAIN: Final = re.compile(r"[^\s'\"\\#]+")
_RUNS: Final = {
    "": re.compile(r"[^ \t\n\v\f\r'\"\\#]+"),
    "'": re.compile(r"[^'\\]+"),
    '"': re.compile(r"[^\"\\]+"),
}
"""What means itself outside of quotes, and inside of either kind."""
_SPECIAL: Final = re.compile(r"([\"\\])")
_BREAKS: Final = re.compile(r"[\n\r\0]+")


class UnmatchedError(Exception):
    """A quote has no end; carries the offset at which it stands."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Word:
    """line[start:end], and the `value` that is left without quotes; `at` are the offsets of its letters."""

    value: str
    start: int
    end: int
    at: tuple[int, ...]


def words(line: str, start: int) -> Iterator[Word]:
    """The words of `line` from `start` on; raises UnmatchedError."""
    position = start
    while True:
        while position < len(line) and line[position] in SPACES:
            position += 1
        if position == len(line) or line[position] == "#":
            return
        word = _word(line, position)
        yield word
        position = word.end


def _word(line: str, start: int) -> Word:
    value: list[str] = []
    at: list[int] = []
    quote = ""
    opened = position = start
    while position < len(line) and (quote or line[position] not in SPACES):
        mark = line[position]
        if plain := _RUNS[quote].match(line, position):
            value.append(plain[0])
            at.extend(range(position, plain.end()))
            position = plain.end()
            continue
        if mark == "\\" and position + 1 < len(line):
            value.append(line[position + 1])
            at.append(position)
            position += 1
        elif quote and mark == quote:
            quote = ""
        elif not quote and mark in "\"'":
            quote, opened = mark, position
        elif mark == "#":
            break
        position += 1
    if quote:
        raise UnmatchedError(opened)
    return Word("".join(value), start, position, tuple(at))


def written(value: str) -> str:
    """`value` as one word; line breaks, which none can hold, become blanks."""
    value = _BREAKS.sub(" ", value)
    if not value or _PLAIN.fullmatch(value):
        return value
    escaped = _SPECIAL.sub(r"\\\1", value)
    return f'"{escaped}"'


def escaped(value: str) -> str | None:
    """`value` as it is written inside of quotes of either kind, or outside; None when no line holds it."""
    if _BREAKS.search(value):
        return None
    return "".join(mark if mark.isalnum() else f"\\{mark}" for mark in value)
