"""Where in its file a JobSpec's field was written, so that what is lost can be shown in its place.

The dialect's table of keys says how a path is spelled; the elements of lists are taken to stand in the
order of the JobSpec's.  What can't be found exactly is shown at the nearest thing around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jobs.dialects.base import Dialect, Note, Position
from jobs.dialects.field_map import Row
from jobs.dialects.spans import escape, split
from jobs.spec import JobSpec

OF_JOB_SPEC: Final = frozenset({"lost", "approximated", "added"})
"""Notes whose pointers are paths of the JobSpec."""

_STEP: Final = re.compile(r"(?P<name>[^.\[\]]+)(?P<list>\[(?P<which>[^\]]*)\])?")


@dataclass(frozen=True, slots=True)
class Places:
    """A text that was read as `spec`, and how its dialect spells the fields."""

    text: str
    dialect: Dialect
    spec: JobSpec
    fields: Sequence[Row]

    def placed(self, note: Note) -> Note:
        """`note` with line and column, whatever its pointer leads to: JobSpec, extra or text."""
        if note.line is not None or not note.pointer:
            return note
        spellings = self._spellings(note.pointer) if note.code in OF_JOB_SPEC else ()
        for pointer in (*spellings, self._numbered(note.pointer)):
            place = self._found(pointer)
            if place:
                return replace(note, line=place[0], column=place[1])
        return note

    def _found(self, pointer: str) -> Position | None:
        """Where `pointer` stands, if more is found than the text as a whole."""
        place = self.dialect.locate(self.text, pointer)
        return place if place and place != self.dialect.locate(self.text, "") else None

    def _spellings(self, path: str) -> Iterator[str]:
        """Pointers that may have said `path`, the most exact first."""
        asked = split(path)
        matches = [(_matched(row.path, asked, self.spec), row) for row in self.fields if row.path]
        numbers = [token for token in asked if token.isdigit()]
        for match, row in sorted(matches, key=lambda each: -each[0].used):
            if match.whole:
                rest = "".join(f"/{escape(token)}" for token in asked[match.used :])
                yield _spelled(row.spelling, numbers) + rest
        for match, row in matches:  # else another field of the same element
            if not match.whole and match.used and asked[match.used - 1].isdigit():
                yield _spelled(row.spelling, numbers)

    def _numbered(self, name: str) -> str:
        """The pointer of an extra: in its name roles stand where the text has numbers."""
        roles = {role.name: str(index) for index, role in enumerate(self.spec.roles)}
        return "".join(f"/{roles.get(token, token)}" for token in name.split("/")[1:])


@dataclass(frozen=True, slots=True)
class _Match:
    """How many tokens of a pointer a table's path stands for, and whether it is used up by them."""

    used: int
    whole: bool


def _matched(path: str, asked: Sequence[str], spec: JobSpec) -> _Match:
    used = 0
    for step in _STEP.finditer(path):
        if used >= len(asked) or asked[used] != step["name"]:
            return _Match(used, whole=False)
        used += 1
        if step["list"]:
            if used >= len(asked) or not asked[used].isdigit():
                return _Match(0, whole=False)
            if step["which"] and not _is_mount_for(step["which"], int(asked[used]), spec):
                return _Match(0, whole=False)
            used += 1
    return _Match(used, whole=True)


def _is_mount_for(purpose: str, index: int, spec: JobSpec) -> bool:
    return index < len(spec.mounts) and spec.mounts[index].purpose == purpose


def _spelled(spelling: str, numbers: Sequence[str]) -> str:
    """`/taskRoles[]/name` as `/taskRoles/1/name`."""
    left = iter(numbers)
    return re.sub(r"\[\]", lambda _brackets: f"/{next(left, 0)}", spelling)
