"""Where in its file a JobSpec's field was written, so that what is lost can be shown in its place.

The dialect's table of keys says how a path is spelled; the elements of lists are taken to stand in the
order of the JobSpec's.  What can't be found exactly is shown at the nearest thing around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, TypeAlias

from jobs.dialects.base import Note, Position
from jobs.dialects.field_map import Row
from jobs.dialects.fields import CONSOLE
from jobs.dialects.spans import escape, split
from jobs.spec import JobSpec

OF_JOB_SPEC: Final = frozenset({"lost", "approximated", "added", "kept_for_console"})
"""Notes whose pointers are paths of the JobSpec."""

_STEP: Final = re.compile(r"(?P<name>[^.\[\]]+)(?:\[(?P<which>[^\]]*)\])?")


MOST_PLACED: Final = 500
"""Nobody looks at more places than this; the others are told without a line."""


Locate: TypeAlias = Callable[[str], Position | None]
"""Where what a pointer leads to stands in a text."""


class Places:
    """A text that was read as `spec`, and how its dialect spells the fields."""

    def __init__(self, locate: Locate, spec: JobSpec, fields: Sequence[Row]) -> None:
        self._locate = locate
        self._spec = spec
        self._fields = [row for row in fields if row.path]
        self._numbers = {role.name: str(index) for index, role in enumerate(spec.roles)}
        self._names = {number: name for name, number in self._numbers.items()}

    def all_placed(self, notes: Iterable[Note]) -> tuple[Note, ...]:
        """`notes` with lines and columns, as many as anybody looks at."""
        numbered = enumerate(notes)
        return tuple(self.placed(note) if count < MOST_PLACED else note for count, note in numbered)

    def placed(self, note: Note) -> Note:
        """`note` with line and column, whatever its pointer leads to: JobSpec, extra or text."""
        if note.line is not None or not note.pointer:
            return note
        place = self.of_field(note.pointer) if note.code in OF_JOB_SPEC else None
        place = place or self._found(note.pointer)
        return replace(note, line=place[0], column=place[1]) if place else note

    def of_field(self, path: str) -> Position | None:
        """Where the JobSpec's field at the pointer `path` was written, else the nearest thing around it."""
        nearest = None
        for pointer, own in self._spellings(path):
            place = self._found(pointer)
            if place and place != self._found(pointer.rpartition("/")[0]):
                return place
            nearest = nearest or (None if own else place)
        return nearest or next(filter(None, map(self._found, self._beside(path))), None)

    def _found(self, pointer: str) -> Position | None:
        """Where `pointer` stands, if more is found than the text as a whole.

        A role may stand in a list or under its name: of both, what lies deeper stands further down.
        """
        whole = self._locate("")
        places = (self._locate(each) for each in self._by_number_and_name(pointer))
        return max((place for place in places if place and place != whole), default=None)

    def _by_number_and_name(self, pointer: str) -> set[str]:
        tokens = split(pointer)
        first = next((at for at, token in enumerate(tokens) if token in self._names), len(tokens))
        by_name = [self._names[token] if at == first else token for at, token in enumerate(tokens)]
        by_number = [self._numbers.get(token, token) for token in tokens]
        return {_pointer(by_number), _pointer(by_name)}

    def _spellings(self, path: str) -> Iterator[tuple[str, bool]]:
        """Pointers that may have said `path`, the most exact first; whether each is in our own object."""
        asked = split(path)
        matches = [(_matched(row.path, asked, self._spec), row) for row in self._fields]
        for match, row in sorted(matches, key=lambda each: -each[0].used):
            if match.whole:
                yield _spelled(row.spelling, asked) + _pointer(asked[match.used :]), row.source == CONSOLE

    def _beside(self, path: str) -> Iterator[str]:
        """Pointers to other fields of the same element of a list."""
        asked = split(path)
        for row in self._fields:
            match = _matched(row.path, asked, self._spec)
            if not match.whole and match.used and asked[match.used - 1].isdigit():
                yield _spelled(row.spelling, asked)


def _pointer(tokens: Sequence[str]) -> str:
    return "".join(f"/{escape(token)}" for token in tokens)


@dataclass(frozen=True, slots=True)
class _Match:
    """How many tokens of a pointer a table's path stands for, and whether it is used up by them."""

    used: int
    whole: bool


def _matched(path: str, asked: Sequence[str], spec: JobSpec) -> _Match:
    used = 0
    for step in _steps(path):
        if used >= len(asked) or asked[used] != step.name:
            return _Match(used, whole=False)
        used += 1
        if step.which is not None:
            if used >= len(asked) or not asked[used].isdigit():
                return _Match(0, whole=False)
            if step.which and not _is_mount_for(step.which, int(asked[used]), spec):
                return _Match(0, whole=False)
            used += 1
    return _Match(used, whole=True)


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a table's path; `which` elements of a list ("" all, None: it is no list)."""

    name: str
    which: str | None


@cache
def _steps(path: str) -> tuple[_Step, ...]:
    return tuple(_Step(step["name"], step["which"]) for step in _STEP.finditer(path))


def _is_mount_for(purpose: str, index: int, spec: JobSpec) -> bool:
    return index < len(spec.mounts) and spec.mounts[index].purpose == purpose


def _spelled(spelling: str, asked: Sequence[str]) -> str:
    """`/taskRoles[]/name` as `/taskRoles/1/name`."""
    left = iter([token for token in asked if token.isdigit()])
    return re.sub(r"\[\]", lambda _brackets: f"/{next(left, 0)}", spelling)
