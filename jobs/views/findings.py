"""What there is to say about a job file before it is submitted, with the place of everything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jobs import dialects, services
from jobs.assets import resolving
from jobs.assets.resolving import Resolved
from jobs.dialects.base import Array, Note, Parsed, Problem, Refused
from jobs.dialects.checking import check
from jobs.messages.findings import Finding, of_note, of_problem
from jobs.models import Job
from jobs.spec import JobSpec
from jobs.uploads import holding
from quotas.access import may_submit_in
from quotas.models import User


@dataclass(frozen=True, slots=True)
class Mend:
    """A role's command as it was written, and as it will run."""

    role: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything about one text; `spec` is None when it can't be accepted, `array` where it is one job's."""

    dialect: str = ""
    problems: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    mends: tuple[Mend, ...] = ()
    spec: JobSpec | None = None
    array: Array | None = None

    @property
    def jobs(self) -> int:
        """How many jobs the text is for."""
        return len(self.array.indexes) if self.array else 1


def examine(
    user: User, text: str, dialect: str | None = None, origin: Job | None = None, template: str = ""
) -> Findings:
    """Read `text`, made from `origin` or a version of a template, and say all there is to say to `user`.

    Never raises.
    """
    found = check(text, dialect)
    if found.parsed is None or found.dialect is None:
        return Findings(found.dialect or "", problems=problems_of(text, found.problems))
    try:
        mended = services.mended(text, found.parsed, found.dialect)[1]
    except Refused as refused:
        return Findings(found.dialect, problems=problems_of(text, refused.problems))
    lacking = (
        *services.wrong_with(user, text, found.dialect, found.parsed, origin, template),
        *holding.problems(user, text, found.dialect, found.parsed),
    )
    made_of = _made_of(user, text, found.dialect, found.parsed)
    wrong = problems_of(text, (*lacking, *made_of.problems))
    notes = tuple(of_note(note) for note in (*found.notes, *made_of.notes))
    spec = None if wrong else mended.spec
    return Findings(found.dialect, wrong, notes, _mends(found.parsed, mended), spec, mended.array)


def _made_of(user: User, text: str, dialect: str, parsed: Parsed) -> Resolved:
    """What its ids mean where the job would go.  Somebody of several workspaces may send it to another one,
    so what is not of this one is no problem yet.
    """
    try:
        quota = services.find_quota(user, services.Place(), parsed.spec)
    except Refused:
        return Resolved(parsed.spec)
    found = resolving.resolve(user, text, dialect, parsed, quota.workspace)
    if may_submit_in(user).count() > 1:
        found.problems = tuple(each for each in found.problems if each.code != "asset_not_yours")
    return found


def problems_of(text: str, problems: Iterable[Problem]) -> tuple[Finding, ...]:
    """Problems with their sentences and the lines they are about."""
    lines = text.splitlines()
    return tuple(of_problem(problem, lines) for problem in problems)


def notes_of(text: str, notes: Iterable[Note], dialect: str) -> tuple[Finding, ...]:
    """Notes with their sentences; where they stand is worked out here, since somebody looks."""
    return tuple(of_note(note) for note in dialects.placed(notes, text, dialect))


def _mends(before: Parsed, after: Parsed) -> tuple[Mend, ...]:
    """The roles whose command the offered fixes change."""
    return tuple(
        Mend(old.name, old.command, new.command)
        for old, new in zip(before.spec.roles, after.spec.roles, strict=True)
        if old.command != new.command
    )
