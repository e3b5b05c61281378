"""A dialect that also takes texts in which its job file is wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from jobs.dialects.base import Dialect, Fix, Guess, Parsed, Position, Problem, Refused, Rendered
from jobs.dialects.once import once
from jobs.dialects.pasted.layers import Opened
from jobs.dialects.pasted.opening import opened
from jobs.spec import JobSpec

PLAIN: Final = 70
"""A guess as sure as this is right about the text as it stands."""


@once
def _opened(text: str) -> Opened | None:
    return opened(text)


class Pasted:
    """`dialect`, for job files and for texts that hold one.

    What is parsed, fixed or rendered from such a text is the job file itself; every position is one of the
    text as it was pasted.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.name = dialect.name

    def sniff(self, text: str) -> Guess | None:
        """See `base.Dialect`."""
        guess = self._dialect.sniff(text)
        if guess and guess.confidence >= PLAIN:
            return guess
        found = _opened(text)
        return guess if found is None else self._dialect.sniff(found.text)

    def parse(self, text: str) -> Parsed:
        """See `base.Dialect`; the first note says what was recognised, its fix is the job file itself."""
        found = _opened(text)
        if found is None:
            return self._dialect.parse(text)
        try:
            parsed = self._dialect.parse(found.text)
        except Refused as refused:
            raise Refused(tuple(_placed(each, found) for each in refused.problems)) from None
        first, *others = found.notes()
        recognised = replace(first, fix=Fix("", found.text))
        return replace(parsed, notes=(recognised, *others, *parsed.notes))

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: str | None = None) -> Rendered:
        """See `base.Dialect`."""
        found = None if base is None else _opened(base)
        return self._dialect.render(spec, extras, base if found is None else found.text)

    def locate(self, text: str, pointer: str) -> Position | None:
        """See `base.Dialect`."""
        found = _opened(text)
        if found is None:
            return self._dialect.locate(text, pointer)
        place = self._dialect.locate(found.text, pointer)
        return found.at(place) if place else None

    def apply_fixes(self, text: str, fixes: Iterable[Fix]) -> str:
        """See `base.Dialect`; a fix of the whole text puts another in its place, before the others."""
        wanted = list(fixes)
        whole = [fix.value for fix in wanted if not fix.pointer and isinstance(fix.value, str)]
        found = _opened(text)
        plain = whole[-1] if whole else text if found is None else found.text
        return self._dialect.apply_fixes(plain, [fix for fix in wanted if fix.pointer])

    def with_secrets(self, text: str, values: Mapping[str, str]) -> str:
        """See `base.Dialect`."""
        return self._dialect.with_secrets(text, values)

    def schema(self) -> Mapping[str, object]:
        """See `base.Dialect`."""
        return self._dialect.schema()


def _placed(problem: Problem, found: Opened) -> Problem:
    if problem.line is None or problem.column is None:
        return problem
    line, column = found.at((problem.line, problem.column))
    return replace(problem, line=line, column=column)
