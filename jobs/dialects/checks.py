"""Checking one text, with positions, and making every offered fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jobs.dialects.base import Fix, Note, Parsed, Problem, Refused
from jobs.dialects.document import Document

MOST_ROUNDS: Final = 5
"""One fix may uncover the next problem; this often is looked again."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The problems and notes of one document; `parsed` is None when it is refused."""

    document: Document
    problems: tuple[Problem, ...] = ()
    notes: tuple[Note, ...] = ()
    parsed: Parsed | None = None


def check(document: Document) -> CheckResult:
    """Return every problem and note of the document, with lines and columns; never raises."""
    try:
        parsed = document.parsed
    except Refused as refused:
        return CheckResult(document, problems=refused.problems)
    return CheckResult(document, notes=document.locate_notes(parsed.notes), parsed=parsed)


def apply_all_fixes(checked: CheckResult) -> CheckResult:
    """Return the document with all fixes made that are on offer, and what there is to say about it then."""
    for _round in range(MOST_ROUNDS):
        fixes = [problem.fix for problem in checked.problems if problem.fix]
        fixes += [note.fix for note in checked.notes if note.fix]
        if not fixes:
            break
        known = checked.document.pin(checked.document.known_dialect)
        try:
            document = apply(known, fixes)
        except Refused:
            break  # what can't be read can't be fixed piece by piece
        if document.text == checked.document.text:
            break
        checked = check(document)
    return checked


def apply(document: Document, fixes: Sequence[Fix]) -> Document:
    """Return the document with `fixes` made, one of the whole text first.

    Raises Refused on unreadable text.
    """
    whole = next((fix.value for fix in fixes if not fix.pointer and isinstance(fix.value, str)), None)
    return Document(whole) if document.given is None and whole is not None else document.apply_fixes(fixes)
