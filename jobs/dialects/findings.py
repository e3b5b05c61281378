"""The problems and notes of one text, collected while it is read."""

from __future__ import annotations

from typing import Final, Protocol

from jobs.dialects.base import Fix, Note, Position, Problem, Refused
from jobs.dialects.expansion_limit import ExpansionAllowance

MOST: Final = 100
"""Nobody reads more problems, or notes, than this; the rest is counted."""


FEW: Final = 20
"""For so many problems what was meant is looked for; a file with more was not mistyped."""


class Located(Protocol):
    """A text that was read: `source.Source`, or what a dialect beside JSON has instead."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return the notes on what was tolerated in the text."""

    def position(self, pointer: str) -> Position:
        """Return line and column of what stands at `pointer`, or nearest to it."""


class Findings:
    """Problems and notes about one text, in the order in which they were met.

    `room` is what references in the text may still add to it.
    """

    def __init__(self, room: ExpansionAllowance | None = None) -> None:
        self.room = room or ExpansionAllowance()
        self._problems: list[Problem] = []
        self._notes: list[Note] = []
        self._more_problems = 0
        self._more_notes = 0

    def problem(
        self,
        code: str,
        pointer: str,
        source: str,
        fix: Fix | None = None,
        **params: str | float | None,
    ) -> None:
        """The text can't be accepted because of what stands at `pointer`; `source` made the rule."""
        if len(self._problems) == MOST:
            self._more_problems += 1
            return
        self._problems.append(Problem(code, pointer, params=params, fix=fix, source=source))

    def note(self, code: str, pointer: str, fix: Fix | None = None, **params: str | float | None) -> None:
        """Something about `pointer` was tolerated, ignored, approximated or lost."""
        if len(self._notes) == MOST:
            self._more_notes += 1
            return
        self._notes.append(Note(code, pointer, params, fix))

    @property
    def looks_mistyped(self) -> bool:
        """Return whether so little is wrong that it pays to look for what was meant."""
        return len(self._problems) < FEW

    def has_few(self, code: str) -> bool:
        """Return whether so few notes of this kind were made that it pays to look for what was meant."""
        return sum(note.code == code for note in self._notes) < FEW

    @property
    def any_problem(self) -> bool:
        """Return whether anything was found that keeps the text from being accepted."""
        return bool(self._problems)

    def refuse_if_any(self, source: Located) -> None:
        """Raise Refused with all problems in the order of the text; here their places are worked out."""
        if not self._problems:
            return
        placed = [problem.at(source.position(problem.pointer)) for problem in self._problems]
        placed.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
        if self._more_problems:
            placed.append(Problem("more_problems", params={"count": self._more_problems}))
        raise Refused(tuple(placed))

    def notes(self, source: Located) -> tuple[Note, ...]:
        """Return the notes on the text itself, then those on its content."""
        more = (Note("more_notes", params={"count": self._more_notes}),) if self._more_notes else ()
        return (*source.notes, *self._notes, *more)
