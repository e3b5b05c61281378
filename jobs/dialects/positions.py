"""The positions of a JobSpec's fields in its file, so that a loss can be shown in its place.

The dialect's table of keys says how a path is spelled; the elements of lists are taken to stand in the
order of the JobSpec's.  What can't be found exactly is shown at the nearest thing around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Final, TypeAlias

from jobs.dialects.base import Note, Position
from jobs.dialects.field_map import FieldRow
from jobs.dialects.fields import CONSOLE
from jobs.dialects.spans import escape, split
from jobs.spec import JobSpec

OF_JOB_SPEC: Final = frozenset({"lost", "approximated", "added", "kept_for_console", "no_effect"})
"""Notes whose pointers are paths of the JobSpec."""

_STEP: Final = re.compile(r"(?P<name>[^.\[\]]+)(?:\[(?P<which>[^\]]*)\])?")


MOST_PLACED: Final = 500
"""Nobody looks at more places than this; the others are told without a line."""


Locate: TypeAlias = Callable[[str], Position | None]
"""Where what a pointer leads to stands in a text."""


class FieldPositions:
    """A text that was read as `spec`, and how its dialect spells the fields."""

    def __init__(self, locate: Locate, spec: JobSpec, fields: Sequence[FieldRow]) -> None:
        self._locate = locate
        self._spec = spec
        self._fields = [row for row in fields if row.path]
        self._numbers = {role.name: str(index) for index, role in enumerate(spec.roles)}
        self._names = {number: name for name, number in self._numbers.items()}

    def all_placed(self, notes: Iterable[Note]) -> tuple[Note, ...]:
        """Return `notes` with lines and columns, as many as anybody looks at."""
        numbered = enumerate(notes)
        return tuple(self.locate(note) if count < MOST_PLACED else note for count, note in numbered)

    def locate(self, note: Note) -> Note:
        """Return `note` with line and column, whatever its pointer leads to: JobSpec, extra or text."""
        if note.line is not None or not note.pointer:
            return note
        place = self.of_field(note.pointer) if note.code in OF_JOB_SPEC else None
        return note.at(place or self._locate_known(note.pointer))

    def of_field(self, path: str) -> Position | None:
        """Return the position of the JobSpec's field at the pointer `path`, or of what is around it."""
        nearest = None
        for pointer, own in self._spellings(path):
            place = self._locate_known(pointer)
            if place and place != self._locate_known(pointer.rpartition("/")[0]):
                return place
            nearest = nearest or (None if own else place)
        return nearest or next(filter(None, map(self._locate_known, self._list_neighbours(path))), None)

    def pointer_of(self, path: str) -> str:
        """Return the pointer in the text to the JobSpec's field at `path`, or to what is around it.

        A pointer that leads to no field of the JobSpec is returned as it is.
        """
        nearest = None
        for pointer, own in self._spellings(path):
            found = self._nearest_pointer(pointer)
            if found == pointer:
                return found
            nearest = nearest or (None if own else found)
        return nearest or path

    def _nearest_pointer(self, pointer: str) -> str:
        """Return the pointer to what the text has of `pointer`: itself, or what is around it."""
        while pointer:
            outer = pointer.rpartition("/")[0]
            place = self._locate_known(pointer)
            if place and place != self._locate_known(outer):
                break
            pointer = outer
        return pointer

    def _locate_known(self, pointer: str) -> Position | None:
        """Return the position of `pointer`, if more is found than the text as a whole.

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
        matches = [(*_match(row.path, asked, self._spec), row) for row in self._fields]
        for used, is_whole, row in sorted(matches, key=lambda each: -each[0]):
            if is_whole:
                yield _fill_indexes(row.spelling, asked) + _pointer(asked[used:]), row.source == CONSOLE

    def _list_neighbours(self, path: str) -> Iterator[str]:
        """Yield pointers to other fields of the same element of a list."""
        asked = split(path)
        for row in self._fields:
            used, is_whole = _match(row.path, asked, self._spec)
            if not is_whole and used and asked[used - 1].isdigit():
                yield _fill_indexes(row.spelling, asked)


def _pointer(tokens: Sequence[str]) -> str:
    return "".join(f"/{escape(token)}" for token in tokens)


def _match(path: str, asked: Sequence[str], spec: JobSpec) -> tuple[int, bool]:
    """Return how many tokens of a pointer a table's path stands for, and whether it is used up by them."""
    used = 0
    for name, which in _split_path(path):
        if used >= len(asked) or asked[used] != name:
            return used, False
        used += 1
        if which is not None:
            if used >= len(asked) or not asked[used].isdigit():
                return 0, False
            purposes = [mount.purpose for mount in spec.mounts]
            if which and which not in purposes[int(asked[used]) : int(asked[used]) + 1]:
                return 0, False
            used += 1
    return used, True


@cache
def _split_path(path: str) -> list[tuple[str, str | None]]:
    """Return the names in a table's path, each with which elements of a list ("" all, None: no list)."""
    return [(step["name"], step["which"]) for step in _STEP.finditer(path)]


def _fill_indexes(spelling: str, asked: Sequence[str]) -> str:
    """`/taskRoles[]/name` as `/taskRoles/1/name`."""
    left = iter([token for token in asked if token.isdigit()])
    return re.sub(r"\[\]", lambda _brackets: f"/{next(left, 0)}", spelling)
