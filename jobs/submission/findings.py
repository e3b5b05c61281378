"""What there is to say about a job file before it is submitted, with the place of everything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jobs import submission
from jobs.assets import resolving
from jobs.assets.uploads import holding
from jobs.dialects.base import Array, Note, Parsed, Problem, Refused
from jobs.dialects.checking import check
from jobs.dialects.document import Document
from jobs.form import sizes
from jobs.messages.findings import Finding, of_note, of_problem
from jobs.models import Job
from jobs.spec import JobSpec
from jobs.submission import feasibility
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
    user: User,
    document: Document,
    origin: Job | None = None,
    template: str = "",
    place: submission.Place = submission.ANYWHERE,
) -> Findings:
    """Read a job file, made from `origin` or a version of a template, and say all there is to say to `user`
    of a job that would go to `place`.

    Never raises.
    """
    found, dialect, text = check(document), document.known_dialect or "", document.text
    if found.parsed is None:
        return Findings(dialect, problems=problems_of(text, found.problems))
    try:
        mended = submission.mended(document).parsed
    except Refused as refused:
        return Findings(dialect, problems=problems_of(text, refused.problems))
    lacking = (
        *submission.wrong_with(user, document, origin, template),
        *holding.problems(user, document),
    )
    there = _there(user, document.with_parsed(replace(found.parsed, notes=found.notes)), place)
    wrong = problems_of(text, (*lacking, *there.problems))
    notes = tuple(of_note(note) for note in there.notes)
    spec = None if wrong else mended.spec
    return Findings(dialect, wrong, notes, _mends(found.parsed, mended), spec, mended.array)


@dataclass(frozen=True, slots=True)
class _There:
    """What there is to say about a job where it would go."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[Note, ...] = ()


def _there(user: User, document: Document, place: submission.Place) -> _There:
    """What its ids mean where the job would go, and what it will never find there.  Somebody of several
    workspaces may send it to another one, so what is not of this one is no problem yet.
    """
    parsed = document.parsed
    try:
        quota = submission.find_quota(user, place, parsed.spec)
    except Refused:
        return _There(notes=parsed.notes)
    parsed = sizes.sized(parsed, quota)
    document = document.with_parsed(parsed)
    made_of = resolving.resolve(user, document, quota.workspace)
    wrong = made_of.problems
    if not place.workspace and may_submit_in(user).count() > 1:
        wrong = tuple(each for each in wrong if each.code != "asset_not_yours")
    never = feasibility.problems(user, quota, replace(parsed, spec=made_of.spec))
    noted = feasibility.select_notes(quota, (*parsed.notes, *made_of.notes))
    problems = (*wrong, *feasibility.locate(never, document))
    return _There(problems, (*noted, *feasibility.notes(quota, made_of.spec)))


def problems_of(text: str, problems: Iterable[Problem]) -> tuple[Finding, ...]:
    """Problems with their sentences and the lines they are about."""
    lines = text.splitlines()
    return tuple(of_problem(problem, lines) for problem in problems)


def notes_of(document: Document, notes: Iterable[Note]) -> tuple[Finding, ...]:
    """Notes with their sentences; where they stand is worked out here, since somebody looks."""
    return tuple(of_note(note) for note in document.locate_notes(notes))


def _mends(before: Parsed, after: Parsed) -> tuple[Mend, ...]:
    """The roles whose command the offered fixes change."""
    return tuple(
        Mend(old.name, old.command, new.command)
        for old, new in zip(before.spec.roles, after.spec.roles, strict=True)
        if old.command != new.command
    )
