"""The words of a shell's command line, each with the place of its characters.  Nothing is expanded or run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from jobs.dialects.patterns import compile_pattern

_CHUNK: Final = compile_pattern(
    r"""(?P<blank>(?:[ \t]|\\\r?\n)+)"""
    r"""|(?P<end>[\r\n;&|<>()]+)"""
    r"""|'(?P<single>[^']*)'"""
    r"""|\$'(?P<ansi>(?:[^'\\]|\\.)*+)'"""
    r"""|"(?P<double>(?:[^"\\]|\\.)*+)\""""
    r"""|\\(?P<escaped>.)"""
    r"""|(?P<plain>[^\s'"\\;&|<>()$]+|\$)""",
    re.DOTALL,
)
_IN_DOUBLE: Final = re.compile(r'\\(["\\$`])|\\\r?\n()|([^\\]+|\\)', re.DOTALL)
_IN_ANSI: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)|([^\\]+)", re.DOTALL)
_ANSI: Final = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Word:
    """One word as the shell hands it on; `places` are pairs of an offset in it and one in the text."""

    value: str
    places: tuple[tuple[int, int], ...]

    @property
    def at(self) -> int:
        """Where it begins in the text."""
        return self.places[0][1]

    def without(self, count: int) -> Word:
        """The word without its first characters."""
        before = [place for place in self.places if place[0] <= count]
        first = (0, before[-1][1] + count - before[-1][0])
        rest = ((inner - count, outer) for inner, outer in self.places if inner > count)
        return Word(self.value[count:], (first, *rest))


MOST: Final = 1000
"""A command of more words was made to waste time."""


def words(text: str, start: int) -> list[Word] | None:
    """The words of the one simple command that begins at `start`; None when there are too many."""
    found = list(islice(_words(text, start), MOST + 1))
    return found if len(found) <= MOST else None


def _words(text: str, start: int) -> Iterator[Word]:
    at = start
    parts: list[tuple[str, int]] = []
    while at < len(text):
        found = _CHUNK.match(text, at)
        if found is None or found.lastgroup == "end":
            break
        if found.lastgroup == "blank":
            if parts:
                yield _word(parts)
            parts = []
        else:
            parts += _parts(found)
        at = found.end()
    if parts:
        yield _word(parts)


def _word(parts: list[tuple[str, int]]) -> Word:
    places, length = [], 0
    for value, at in parts:
        places.append((length, at))
        length += len(value)
    return Word("".join(value for value, _at in parts), tuple(places))


def _parts(found: re.Match[str]) -> Iterator[tuple[str, int]]:
    """What one piece of a word says, with places."""
    kind = str(found.lastgroup)
    start = found.start(kind)
    said = found[kind]
    if kind == "double":
        for inner in _IN_DOUBLE.finditer(said):
            value = inner[1] or inner[3] or ""
            yield value, start + inner.start() + int(inner[1] is not None)
    elif kind == "ansi":
        for inner in _IN_ANSI.finditer(said):
            yield _ansi(inner), start + inner.start()
    else:
        yield said, start
    if not said:
        yield "", start


def _ansi(inner: re.Match[str]) -> str:
    if inner[1] is None:
        return inner[2]
    return chr(int(inner[1][1:], 16)) if len(inner[1]) == 5 else _ANSI.get(inner[1], inner[1])
