"""Everything there is to say about one text, with places; and the text with every offered fix made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from jobs import dialects
from jobs.dialects.base import Fix, Note, Parsed, Problem, Refused

MOST_ROUNDS: Final = 5
"""One fix may uncover the next problem; this often is looked again."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What there is to say about one text; `dialect` is None when it is not known, `parsed` when refused."""

    text: str
    dialect: str | None
    problems: tuple[Problem, ...] = ()
    notes: tuple[Note, ...] = ()
    parsed: Parsed | None = None


def check(text: str, dialect: str | None = None) -> Checked:
    """Every problem and note of `text`, with lines and columns; never raises."""
    name = dialect
    try:
        name = dialect or dialects.name_of(text)
        parsed = dialects.get(name).parse(text)
    except Refused as refused:
        return Checked(text, name, problems=refused.problems)
    return Checked(text, name, notes=dialects.placed(parsed.notes, text, name), parsed=parsed)


def fixed(checked: Checked) -> Checked:
    """The text with all fixes made that are on offer, and what there is to say about it then."""
    for _round in range(MOST_ROUNDS):
        fixes = [problem.fix for problem in checked.problems if problem.fix]
        fixes += [note.fix for note in checked.notes if note.fix]
        if not fixes:
            break
        try:
            text = apply(checked.text, fixes, checked.dialect)
        except Refused:
            break  # what can't be read can't be mended piece by piece
        if text == checked.text:
            break
        checked = check(text, checked.dialect)
    return checked


def apply(text: str, fixes: Sequence[Fix], dialect: str | None = None) -> str:
    """`text` with `fixes` made, one of the whole text first; raises Refused on unreadable text."""
    whole = next((fix.value for fix in fixes if not fix.pointer and isinstance(fix.value, str)), None)
    if dialect is None and whole is not None:
        return whole
    return dialects.get(dialect or dialects.name_of(text)).apply_fixes(text, fixes)
