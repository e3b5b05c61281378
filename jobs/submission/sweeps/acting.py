"""What is done to a sweep as a whole: accept it, stop it, run the failed ones again, change how many at once.

All of its jobs are accepted in one transaction or none is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import IntegrityError, transaction

from jobs import dialects, submission
from jobs.dialects.base import Parsed, Problem, Refused
from jobs.dialects.document import Document
from jobs.faults import fault
from jobs.lifecycle import dependencies, transitions
from jobs.models import Job, Sweep, SweepRun
from jobs.models.jobs import new_public_id
from jobs.spec import JobSpec
from jobs.states import TERMINAL, State
from jobs.submission import Conflict, Forbidden, Place, Request
from jobs.submission.sweeps import arrays
from jobs.submission.sweeps.expanding import CannotSweepError, Values, combinations, expanded
from quotas import ledger
from quotas.access import Verb, can
from quotas.models import User

MOST_PROBLEMS: Final = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A job file and what is to vary in it; `at_once` None leaves it to the file, or lets all be under way.

    A file that is a job array says itself what varies.  `template` is the version of a template that it comes
    from, `origin` the job that it was made from; without `keep_original` the fixes that its notes offer are
    made first.
    """

    document: Document
    place: Place = field(default_factory=Place)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    listed: Sequence[Values] = ()
    at_once: int | None = None
    template: str = ""
    origin: Job | None = None
    keep_original: bool = True

    @property
    def digest(self) -> str:
        """What tells one request from another."""
        said = [
            self.document.text,
            self.document.given,
            self.place.workspace,
            self.place.cluster,
            self.place.quota,
        ]
        said += [self.template] if self.template else []
        said += [] if self.keep_original else ["mended"]
        whole = json.dumps([*said, self.grid, [*self.listed], self.at_once], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()


def submit(user: User, asked: Asked, idempotency_key: str | None = None) -> tuple[Sweep, bool]:
    """Accept a sweep; whether the same request came before.  Raises Refused, Conflict."""
    if idempotency_key:
        before = Sweep.objects.filter(owner=user, idempotency_key=idempotency_key).first()
        if before is not None:
            return _replayed(before, asked)
    made = _read(user, asked, new_public_id())
    try:
        with transaction.atomic():
            sweep = _store(user, asked, idempotency_key, made)
    except IntegrityError:
        if not idempotency_key:
            raise
        return _replayed(Sweep.objects.get(owner=user, idempotency_key=idempotency_key), asked)
    fault("accept.after_commit")
    return sweep, False


def _replayed(sweep: Sweep, asked: Asked) -> tuple[Sweep, bool]:
    if sweep.request_digest != asked.digest:
        raise Conflict
    return sweep, True


@dataclass(frozen=True, slots=True)
class _Made:
    """A sweep as it would be stored: its id, what was read, and every job with its values."""

    public_id: str
    parsed: Parsed
    found: Sequence[Values]
    ready: Sequence[submission.Ready]


def _read(user: User, asked: Asked, public_id: str) -> _Made:
    """Every job of the sweep as it would be stored; what is wrong with several is told once."""
    document = asked.document if asked.keep_original else submission.mended(asked.document)
    parsed, ready = document.parsed, []
    try:
        found, specs, bases = _jobs(asked, document, arrays.number_of(public_id))
    except CannotSweepError as error:
        raise Refused(error.problems) from error
    problems: dict[tuple[str, str], Problem] = {}
    for spec, base in zip(specs, bases, strict=True):
        rendered = dialects.get(document.dialect).render(spec, parsed.extras, base=base).document
        try:
            ready.append(_ready(user, asked, rendered.fill(parsed.secrets)))
        except Refused as refused:
            for problem in refused.problems:
                told = problem if parsed.array is None else arrays.placed(problem, asked.document)
                problems.setdefault((problem.code, problem.pointer), told)
    if problems:
        raise Refused(tuple(problems.values())[:MOST_PROBLEMS])
    return _Made(public_id, parsed, found, ready)


def _jobs(
    asked: Asked, document: Document, number: int
) -> tuple[Sequence[Values], Sequence[JobSpec], Sequence[Document]]:
    """The values of each job, the job, and the job file that is to say it.  Raises CannotSweepError."""
    spec, array = document.parsed.spec, document.parsed.array
    if array is None:
        found = combinations(asked.grid, asked.listed)
        return found, expanded(spec, found), [document] * len(found)
    if asked.grid or asked.listed:
        raise CannotSweepError(Problem("sweep_of_array", "/parameters"))
    found = arrays.values(array)
    specs = expanded(arrays.shared(spec, array, number), found, array.indexes)
    return found, specs, [arrays.one(document, array, number, index) for index in array.indexes]


def _ready(user: User, asked: Asked, document: Document) -> submission.Ready:
    if wrong := submission.wrong_with(user, document, asked.origin, asked.template):
        raise Refused(wrong)
    made = submission.ready(user, document, asked.place, asked.origin)
    submission.refuse_beyond_public(made.quota, made.document.parsed.spec)
    return made


def _store(user: User, asked: Asked, key: str | None, made: _Made) -> Sweep:
    array = made.parsed.array
    sweep = Sweep.objects.create(
        public_id=made.public_id,
        name=made.parsed.spec.name,
        owner=user,
        workspace=made.ready[0].quota.workspace,
        names=list(dict.fromkeys(path for values in made.found for path in values)),
        at_once=asked.at_once or (array.most_at_once if array else len(made.ready)),
        file=made.parsed.text if array else "",
        idempotency_key=key,
        request_digest=asked.digest,
    )
    for number, (values, ready) in enumerate(zip(made.found, made.ready, strict=True), 1):
        request = Request(origin=asked.origin, made_of=ready.uses, template=asked.template)
        job = submission.store(user, ready.document, ready.quota, request)
        _enter(sweep, job, number, values)
    fault("accept.before_commit")
    return sweep


def _enter(sweep: Sweep, job: Job, number: int, values: Values, round_: int = 1) -> None:
    """Make the job one of the sweep; beyond those that may be under way it waits for its turn."""
    under_way = dependencies.under_way(sweep)
    waits = under_way >= sweep.at_once
    SweepRun.objects.create(
        sweep=sweep, job=job, number=number, round=round_, values=dict(values), waits=waits
    )
    if waits:
        ledger.keep_back(transitions.key_of(job.public_id, job.attempt_number))


def latest(sweep: Sweep) -> list[SweepRun]:
    """The job of each combination that counts, in their order."""
    rows = sweep.runs.select_related("job", "job__owner", "job__cluster", "job__quota", "job__workspace")
    found: dict[int, SweepRun] = {}
    for row in rows.order_by("number", "round"):
        found[row.number] = row
    return list(found.values())


def stop(user: User, sweep: Sweep) -> int:
    """Ask for the end of all its jobs, those that wait first; answers how many.  Raises Forbidden."""
    _require(user, sweep)
    going = [run for run in latest(sweep) if State(run.job.state) not in TERMINAL]
    for run in sorted(going, key=lambda run: (not run.waits, -run.number)):
        submission.stop(user, run.job)
        fault("sweep.stopping")
    return len(going)


def again(user: User, sweep: Sweep) -> list[Job]:
    """Run the failed ones again, all or none; answers the new jobs.  Raises Forbidden, Refused."""
    _require(user, sweep)
    made = []
    with transaction.atomic():
        Sweep.objects.select_for_update(no_key=True).get(pk=sweep.pk)
        for run in latest(sweep):
            if State(run.job.state) is State.FAILED:
                job = submission.retry(user, run.job).job
                _enter(sweep, job, run.number, run.values, run.round + 1)
                made.append(job)
    return made


def change(user: User, sweep: Sweep, at_once: int) -> None:
    """Let another number of its jobs be under way at a time; what runs goes on.  Raises Forbidden."""
    _require(user, sweep)
    with transaction.atomic():
        Sweep.objects.filter(pk=sweep.pk).update(at_once=at_once)
        dependencies.next_of(sweep.pk)


def _require(user: User, sweep: Sweep) -> None:
    if not can(user, Verb.CONTROL, sweep):
        raise Forbidden
