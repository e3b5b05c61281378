"""Problems and notes of a job file before it is submitted, each with its position."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from jobs import dialects, submission
from jobs.assets import resolution
from jobs.assets.uploads import uploaded_trees
from jobs.dialects.base import Array, Note, Parsed, Problem, Refused
from jobs.dialects.checks import check
from jobs.dialects.document import Document
from jobs.form import sizes
from jobs.messages.findings import Finding, loss_json, of_note, of_problem
from jobs.models import Job, JobFile
from jobs.spec import JobSpec
from jobs.submission.checks import feasibility
from jobs.submission.job_policies import set_default_time_limit
from quotas.access import may_submit_in
from quotas.limits.job_limits import limits_for
from quotas.models import User


@dataclass(frozen=True, slots=True)
class CommandFix:
    """A role's command as it was written, and with the offered fixes applied."""

    role: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything about one text; `spec` is None when it is refused, `array` when it is for one job."""

    dialect: str = ""
    problems: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    fixes: tuple[CommandFix, ...] = ()
    spec: JobSpec | None = None
    array: Array | None = None

    @property
    def jobs(self) -> int:
        """Return the number of jobs that the text is for."""
        return len(self.array.indexes) if self.array else 1


def examine(
    user: User,
    document: Document,
    origin: Job | None = None,
    template: str = "",
    place: submission.JobTarget = submission.ANYWHERE,
) -> Findings:
    """Check a job file, made from `origin` or a version of a template, for `user` and `place`.

    Never raises.
    """
    found, dialect, text = check(document), document.known_dialect or "", document.text
    if found.parsed is None:
        return Findings(dialect, problems=problems_of(text, found.problems))
    try:
        fixed = submission.apply_fixes(document).parsed
    except Refused as refused:
        return Findings(dialect, problems=problems_of(text, refused.problems))
    lacking = (
        *submission.find_problems(user, document, origin, template),
        *uploaded_trees.problems(user, document),
    )
    there, noted = _check_target(user, document.with_parsed(replace(found.parsed, notes=found.notes)), place)
    wrong = problems_of(text, (*lacking, *there))
    notes = tuple(of_note(note) for note in noted)
    spec = None if wrong else fixed.spec
    return Findings(dialect, wrong, notes, _list_fixes(found.parsed, fixed), spec, fixed.array)


def _check_target(
    user: User, document: Document, place: submission.JobTarget
) -> tuple[tuple[Problem, ...], tuple[Note, ...]]:
    """Return the problems and notes of a job at its target: its assets, and what the cluster never runs.

    A person in several workspaces may still choose another one, so an asset of another workspace is no
    problem yet.
    """
    parsed = document.parsed
    try:
        quota = submission.find_quota(user, place, parsed.spec)
    except Refused:
        return (), tuple(parsed.notes)
    parsed = sizes.fill_sizes(parsed, quota)
    document = document.with_parsed(parsed)
    made_of = resolution.resolve(user, document, quota.workspace)
    wrong = made_of.problems
    if wrong and not place.workspace and may_submit_in(user).count() > 1:
        wrong = tuple(each for each in wrong if each.code != "asset_not_yours")
    limits = limits_for(user, quota)
    spec, defaults = set_default_time_limit(limits, replace(parsed, spec=made_of.spec))
    never = feasibility.problems(user, quota, replace(parsed, spec=spec))
    excess = submission.find_excess_of(limits, spec)
    noted = feasibility.select_notes(quota, (*parsed.notes, *made_of.notes))
    problems = (*wrong, *feasibility.locate((*never, *excess), document))
    there = document.places.all_placed(feasibility.notes(user, quota, spec, document.dialect))
    return problems, (*noted, *there, *defaults)


def problems_of(text: str, problems: Iterable[Problem]) -> tuple[Finding, ...]:
    """Return problems with their sentences and the lines they are about."""
    lines = text.splitlines()
    return tuple(of_problem(problem, lines) for problem in problems)


def notes_of(document: Document, notes: Iterable[Note]) -> tuple[Finding, ...]:
    """Return notes with their sentences and positions."""
    return tuple(of_note(note) for note in document.locate_notes(notes))


def _list_fixes(before: Parsed, after: Parsed) -> tuple[CommandFix, ...]:
    """Return the roles whose command the offered fixes change."""
    return tuple(
        CommandFix(old.name, old.command, new.command)
        for old, new in zip(before.spec.roles, after.spec.roles, strict=True)
        if old.command != new.command
    )


@dataclass(frozen=True, slots=True)
class Conversion:
    """A job file in another dialect; `text` has placeholders for secrets, `filled` their values.

    `name` is the job's.  `dialect` is empty when it is not known, `text` None when nothing could be read.
    """

    dialect: str
    name: str = ""
    text: str | None = None
    filled: str | None = None
    losses: tuple[Note, ...] = ()
    problems: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the object that the API answers with."""
        return {
            "dialect": self.dialect or None,
            "text": self.text,
            "notes": [loss_json(loss) for loss in self.losses],
            "problems": [problem.to_json() for problem in self.problems],
        }


def conversion(document: Document, to: str) -> Conversion:
    """Convert the job file to the dialect `to`; problems of the text are not raised."""
    try:
        made = dialects.convert(document, to)
    except Refused as refused:
        return Conversion(document.given or "", problems=problems_of(document.text, refused.problems))
    parsed = document.parsed
    filled = made.document.fill(parsed.secrets).text
    return Conversion(document.dialect, parsed.spec.name, made.document.text, filled, made.losses)


def stored_notes(file: JobFile) -> list[Note]:
    """Return the notes that were stored when the job was submitted."""
    return [Note(row["code"], row["pointer"], row["params"]) for row in file.notes]
