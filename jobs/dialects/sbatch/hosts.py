"""Slurm's lists of nodes: `gpu[1-3,07],cpu1` and the names that they stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

MOST: Final = 1000
"""Names in one list; a longer one stays as it is."""

_PART: Final = re.compile(r"(?P<plain>[^\[\],\s/]+)|(?P<ranges>\[[0-9,\-]+\])", re.ASCII)
_RANGE: Final = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?", re.ASCII)


def expand(text: str) -> tuple[str, ...] | None:
    """Return the names, in their order; None for a file, or for what is no list or a very long one."""
    found: list[str] = []
    for entry in _split_entries(text):
        expanded = _expand(entry)
        if expanded is None or len(found) + len(expanded) > MOST:
            return None
        found += expanded
    return tuple(dict.fromkeys(found))


def to_text(nodes: Iterable[str]) -> str:
    """Names with commas between; "" where they would not be read as the same names."""
    listed = tuple(nodes)
    text = ",".join(listed)
    return text if expand(text) == listed else ""


def _split_entries(text: str) -> Iterator[str]:
    """Yield the parts between commas that stand outside of brackets."""
    depth, start = 0, 0
    for position, mark in enumerate(text):
        depth += (mark == "[") - (mark == "]")
        if mark == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _expand(entry: str) -> list[str] | None:
    """Return the names that one part stands for."""
    made, position = [""], 0
    while position < len(entry):
        match = _PART.match(entry, position)
        if not match:
            return None
        endings = [match["plain"]] if match["plain"] else _expand_numbers(match["ranges"][1:-1])
        if endings is None or len(made) * len(endings) > MOST:
            return None
        made = [before + ending for before in made for ending in endings]
        position = match.end()
    return made if entry else None


def _expand_numbers(text: str) -> list[str] | None:
    """`1-3,07` as numbers of the same width."""
    found: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if not match:
            return None
        first, last = match["first"], match["last"] or match["first"]
        if not 0 <= int(last) - int(first) < MOST:
            return None
        found += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return found
