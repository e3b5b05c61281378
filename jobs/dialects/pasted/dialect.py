"""A dialect that also takes texts in which its job file is wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from jobs.dialects.base import Dialect, Fix, Guess, Parsed, Position, Problem, Refused, Rendered
from jobs.dialects.document import Document
from jobs.dialects.pasted.extraction import extract
from jobs.dialects.pasted.layers import Opened
from jobs.spec import JobSpec

PLAIN: Final = 70
"""A guess as sure as this is right about the text as it stands."""


class Pasted:
    """`dialect`, for job files and for texts that hold one.

    What is parsed, fixed or rendered from such a text is the job file itself; every position is one of the
    text as it was pasted.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.name = dialect.name

    def sniff(self, document: Document) -> Guess | None:
        """See `base.Dialect`."""
        guess = self._dialect.sniff(document)
        if guess and guess.confidence >= PLAIN:
            return guess
        found = extract(document)
        return guess if found is None else self._dialect.sniff(found.document)

    def parse(self, document: Document) -> Parsed:
        """See `base.Dialect`; the first note says what was recognised, its fix is the job file itself."""
        found = extract(document)
        if found is None:
            return self._dialect.parse(document)
        try:
            parsed = self._dialect.parse(found.document)
        except Refused as refused:
            raise Refused(tuple(_place_problem(each, found) for each in refused.problems)) from None
        first, *others = found.notes()
        recognised = replace(first, fix=Fix("", found.text))
        return replace(parsed, notes=(recognised, *others, *parsed.notes))

    def render(self, spec: JobSpec, extras: Mapping[str, object], base: Document | None = None) -> Rendered:
        """See `base.Dialect`."""
        found = None if base is None else extract(base)
        return self._dialect.render(spec, extras, base if found is None else found.document)

    def locate(self, document: Document, pointer: str) -> Position | None:
        """See `base.Dialect`."""
        found = extract(document)
        if found is None:
            return self._dialect.locate(document, pointer)
        place = self._dialect.locate(found.document, pointer)
        return found.at(place) if place else None

    def apply_fixes(self, document: Document, fixes: Iterable[Fix]) -> str:
        """See `base.Dialect`; a fix of the whole text puts another in its place, before the others."""
        wanted = list(fixes)
        whole = [fix.value for fix in wanted if not fix.pointer and isinstance(fix.value, str)]
        found = extract(document)
        plain = Document(whole[-1]) if whole else document if found is None else found.document
        return self._dialect.apply_fixes(plain, [fix for fix in wanted if fix.pointer])

    def with_secrets(self, document: Document, values: Mapping[str, str]) -> str:
        """See `base.Dialect`."""
        return self._dialect.with_secrets(document, values)

    def schema(self) -> Mapping[str, object]:
        """See `base.Dialect`."""
        return self._dialect.schema()


def _place_problem(problem: Problem, found: Opened) -> Problem:
    if problem.line is None or problem.column is None:
        return problem
    return problem.at(found.at((problem.line, problem.column)))
