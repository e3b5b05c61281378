"""`key=value` lines with comments: the place of each value, and what was tolerated.

A value is everything after the first `=`, without blanks around it; commands may hold further ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final

from jobs.dialects.base import Note, Position, Problem, Refused
from jobs.dialects.dlc.limits import PAGE
from jobs.dialects.dlc_params.shapes import BLANKS
from jobs.dialects.document import Document
from jobs.dialects.fields import CONSOLE
from jobs.dialects.json_cleanup import CleanedText, blank_line_numbers
from jobs.dialects.reading_cache import read_once
from jobs.dialects.record import short
from jobs.dialects.source import Source, check_size
from jobs.dialects.spans import split
from jobs.dialects.syntax import INVISIBLE

MOST_LINES: Final = 2_000
JOINED_FROM: Final = 3
"""A single line with this many known keys is a listing that lost its line breaks."""

_LINE: Final = re.compile(r"[^\r\n]+")
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")


Splice = tuple[int, int, str]
"""Beginning, end, and the text that replaces what stands there."""


@dataclass(frozen=True, slots=True)
class ParameterLine:
    """One `key=value`: offsets of the key, and of the value's beginning and end."""

    key: str
    value: str
    start: int
    value_start: int
    value_end: int


@dataclass(frozen=True)
class Lines:
    """A text that was read.  `comments` are (offset, text); `joined` that all stands on one line."""

    text: str
    entries: Mapping[str, ParameterLine]
    comments: tuple[tuple[int, str], ...]
    joined: bool = False
    notes: tuple[Note, ...] = field(default=())

    def position(self, pointer: str) -> Position:
        """Return line and column of the value of `/key`; the beginning when there is none."""
        tokens = split(pointer)
        entry = self.entries.get(tokens[0]) if tokens else None
        return self._source.at(entry.value_start if entry else 0)

    @property
    def values(self) -> dict[str, str]:
        """The values by their keys."""
        return {key: entry.value for key, entry in self.entries.items()}

    def set_values(self, values: Mapping[str, str]) -> list[Splice]:
        """Return the splices that give keys that are there other `values`."""
        there = ((self.entries[key], value) for key, value in values.items() if key in self.entries)
        return [(entry.value_start, entry.value_end, value) for entry, value in there]

    @cached_property
    def _source(self) -> Source:
        return Source(self.text, CleanedText(self.text, self.text), {})


@read_once
def read(document: Document, known: frozenset[str]) -> Lines:
    """Return the entries of `document`; raises Refused with everything that is no entry and no comment."""
    text = document.text
    check_size(text)
    blank = blank_line_numbers(text)
    problems: list[tuple[int, str, str, dict[str, str | int]]] = []
    entries: dict[str, ParameterLine] = {}
    comments: list[tuple[int, str]] = []
    pieces, joined = _pieces(blank, known)
    for start, piece in pieces:
        content = piece.strip(BLANKS)
        offset = start + len(piece) - len(piece.lstrip(BLANKS))
        if not content:
            continue
        if content.startswith("#"):
            comments.append((offset, content))
            continue
        entry = _entry(content, offset)
        fault = _fault(entry, content, entries)
        if fault:
            problems.append((offset, *fault))
        elif entry:
            entries[entry.key] = entry
    lines = Lines(text, entries, tuple(comments), joined, tuple(_note_tolerated(text, blank, joined)))
    if problems:
        raise Refused(tuple(_problem(lines, *problem) for problem in problems[:100]))
    return lines


def _pieces(text: str, known: frozenset[str]) -> tuple[list[tuple[int, str]], bool]:
    """Return each line with its offset; the entries of a listing that lost its line breaks."""
    every = ((match.start(), match[0]) for match in _LINE.finditer(text) if match[0].strip(BLANKS))
    lines = list(islice(every, MOST_LINES + 1))
    if len(lines) > MOST_LINES:
        problem = Problem("too_many_values", "", 1, 1, {"most": MOST_LINES}, source=CONSOLE)
        raise Refused((problem,))
    said = [(start, line) for start, line in lines if not line.strip(BLANKS).startswith("#")]
    if len(said) != 1:
        return lines, False
    start, line = said[0]
    names = "|".join(sorted(known, key=len, reverse=True))
    found = islice(re.finditer(rf"(?:^|[{BLANKS}])({names})=", line), len(known) + 1)
    starts = [match.start(1) for match in found]
    if not JOINED_FROM <= len(starts) <= len(known) or line[: starts[0]].strip(BLANKS):
        return lines, False
    ends = [*starts[1:], len(line)]
    joined = [(start + first, line[first:last]) for first, last in zip(starts, ends, strict=True)]
    return sorted([*(each for each in lines if each != said[0]), *joined]), True


def _entry(content: str, offset: int) -> ParameterLine | None:
    name, equals, rest = content.partition("=")
    key, value = name.rstrip(BLANKS), rest.strip(BLANKS)
    if not equals or not _KEY.fullmatch(key):
        return None
    first = offset + len(name) + 1 + len(rest) - len(rest.lstrip(BLANKS))
    return ParameterLine(key, value, offset, first, first + len(value))


def _fault(
    entry: ParameterLine | None, content: str, entries: Mapping[str, ParameterLine]
) -> tuple[str, str, dict[str, str | int]] | None:
    """Return why a line can't be accepted: a code, a pointer, and parameters."""
    if INVISIBLE.search(content.partition("=")[0]):
        return "invisible_key", "", {"key": INVISIBLE.sub("", short(content.partition("=")[0]))}
    if "\0" in content:
        return "null_character", "", {}
    if entry is None:
        return "not_key_value", "", {"text": short(content)}
    if entry.key in entries:
        return "duplicate_key", f"/{entry.key}", {"key": entry.key}
    return None


def _problem(lines: Lines, offset: int, code: str, pointer: str, params: dict[str, str | int]) -> Problem:
    line, column = lines._source.at(offset)  # noqa: SLF001 - the places of one text
    return Problem(code, pointer, line, column, params, source=PAGE)


def _note_tolerated(text: str, blank: str, joined: bool) -> Iterator[Note]:
    if text.startswith("\ufeff"):
        yield Note("tolerated_bom", params={"count": 1})
    if blank != text:
        yield Note("tolerated_line_numbers", params={"count": 1})
    if joined:
        yield Note("joined_lines")


def splice(text: str, splices: Iterable[Splice]) -> str:
    """Return `text` with its `splices` made."""
    parts, done = [], 0
    for start, stop, new in sorted(splices):
        parts += [text[done:start], new]
        done = stop
    return "".join(parts) + text[done:]
