"""What there is to say about a job file before it is submitted, with the place of everything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from jobs import dialects, messages, services
from jobs.dialects.base import Dialect, Fix, Note, Parsed, Problem, Refused
from jobs.spec import JobSpec

LONGEST_EXCERPT: Final = 160


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem or a note as people read it.  `line` and `column` count from 1."""

    message: str
    code: str
    pointer: str
    line: int | None
    column: int | None
    fix: Fix | None = None
    excerpt: str = ""

    def to_json(self) -> dict[str, Any]:
        """As the editor reads it."""
        fix = self.fix and {"pointer": self.fix.pointer, "value": self.fix.value}
        return {
            "pointer": self.pointer,
            "line": self.line,
            "column": self.column,
            "code": self.code,
            "message": self.message,
            "fix": fix,
        }


@dataclass(frozen=True, slots=True)
class Mend:
    """A role's command as it was written, and as it will run."""

    role: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything about one text; `spec` is None when it can't be accepted."""

    dialect: str = ""
    problems: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    mends: tuple[Mend, ...] = ()
    spec: JobSpec | None = None


def examine(text: str, dialect: str | None = None) -> Findings:
    """Read `text` and say everything there is to say; never raises."""
    name = dialect or ""
    try:
        name, parsed = services.read(text, dialect)
        mended = services.mended(text, parsed, name)[1]
    except Refused as refused:
        return Findings(name, problems=problems_of(text, refused.problems))
    notes = notes_of(text, parsed.notes, dialects.get(name))
    return Findings(name, notes=notes, mends=_mends(parsed, mended), spec=mended.spec)


def problems_of(text: str, problems: Iterable[Problem]) -> tuple[Finding, ...]:
    """Problems with their sentences and the lines they are about."""
    lines = text.splitlines()
    return tuple(
        Finding(
            messages.problem_message(problem),
            problem.code,
            problem.pointer,
            problem.line,
            problem.column,
            problem.fix,
            _excerpt(lines, problem.line),
        )
        for problem in problems
    )


def notes_of(text: str, notes: Iterable[Note], dialect: Dialect) -> tuple[Finding, ...]:
    """Notes with their sentences; where they stand is worked out here, since somebody looks."""
    return tuple(_note(text, note, dialect) for note in notes)


def _note(text: str, note: Note, dialect: Dialect) -> Finding:
    place = (note.line, note.column)
    if note.line is None and note.pointer:
        place = dialect.locate(text, note.pointer) or (None, None)
    return Finding(messages.note_message(note), note.code, note.pointer, *place, note.fix)


def _excerpt(lines: list[str], number: int | None) -> str:
    if number is None or not 0 < number <= len(lines):
        return ""
    line = lines[number - 1].strip()
    return line if len(line) <= LONGEST_EXCERPT else line[: LONGEST_EXCERPT - 1] + "…"


def _mends(before: Parsed, after: Parsed) -> tuple[Mend, ...]:
    """The roles whose command the offered fixes change."""
    return tuple(
        Mend(old.name, old.command, new.command)
        for old, new in zip(before.spec.roles, after.spec.roles, strict=True)
        if old.command != new.command
    )
