"""Commands on a sweep: submit, stop, run the failed jobs again, change how many run at once.

All of its jobs are accepted in one transaction or none is.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
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
from jobs.submission import JobTarget, SubmissionRequest
from jobs.submission.access import require
from jobs.submission.job_submission import find_replay
from jobs.submission.sweeps import arrays
from jobs.submission.sweeps.expansion import CannotSweepError, Values, combinations, expand
from jobs.submission.sweeps.objective import Objective
from quotas import ledger
from quotas.access import Verb
from quotas.models import User

MOST_PROBLEMS: Final = 20


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A request for a sweep: a job file and its parameters.

    `at_once` None takes the file's own limit, or none.  A job array has its parameters in the file.
    `template` is the version of a template that it comes from, `origin` the job that it was made from;
    without `keep_original` the fixes that its notes offer are applied first.
    """

    document: Document
    place: JobTarget = field(default_factory=JobTarget)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    listed: Sequence[Values] = ()
    at_once: int | None = None
    template: str = ""
    origin: Job | None = None
    keep_original: bool = True
    objective: Objective | None = None

    @property
    def digest(self) -> str:
        """Return a digest that differs between different requests."""
        parts = [self.document.text, self.document.given, *astuple(self.place)]
        parts += [self.template] if self.template else []
        parts += [] if self.keep_original else ["mended"]
        parts += [json.dumps(astuple(self.objective))] if self.objective else []
        whole = json.dumps([*parts, self.grid, [*self.listed], self.at_once], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()


def submit(user: User, asked: SweepRequest, idempotency_key: str | None = None) -> tuple[Sweep, bool]:
    """Accept a sweep; return it and whether the same request came before.  Raises Refused, Conflict."""
    earlier = Sweep.objects.filter(owner=user)
    if before := find_replay(earlier, idempotency_key, asked.digest):
        return before, True
    made = _read(user, asked, new_public_id())
    try:
        with transaction.atomic():
            sweep = _store(user, asked, idempotency_key, made)
    except IntegrityError:
        if not (before := find_replay(earlier, idempotency_key, asked.digest)):
            raise
        return before, True
    fault("accept.after_commit")
    return sweep, False


@dataclass(frozen=True, slots=True)
class _Made:
    """A sweep as it would be stored: its id, the parsed file, and every job with its values."""

    public_id: str
    parsed: Parsed
    found: Sequence[Values]
    ready: Sequence[submission.ResolvedJob]


def _read(user: User, asked: SweepRequest, public_id: str) -> _Made:
    """Return every job of the sweep as it would be stored.  Raises Refused, each problem once."""
    document = asked.document if asked.keep_original else submission.apply_fixes(asked.document)
    parsed, ready = document.parsed, []
    try:
        found, specs, bases = _jobs(asked, document, arrays.number_of(public_id))
    except CannotSweepError as error:
        raise Refused(error.problems) from error
    problems: dict[tuple[str, str], Problem] = {}
    for spec, base in zip(specs, bases, strict=True):
        rendered = dialects.get(document.dialect).render(spec, parsed.extras, base=base).document
        try:
            ready.append(_ready(user, asked, rendered.fill(parsed.secrets), len(specs)))
        except Refused as refused:
            for problem in refused.problems:
                located = problem if parsed.array is None else arrays.locate_problem(problem, asked.document)
                problems.setdefault((problem.code, problem.pointer), located)
    if problems:
        raise Refused(tuple(problems.values())[:MOST_PROBLEMS])
    return _Made(public_id, parsed, found, ready)


def _jobs(
    asked: SweepRequest, document: Document, number: int
) -> tuple[Sequence[Values], Sequence[JobSpec], Sequence[Document]]:
    """Return the values, the spec and the base file of each job.  Raises CannotSweepError."""
    spec, array = document.parsed.spec, document.parsed.array
    if array is None:
        found = combinations(asked.grid, asked.listed)
        return found, expand(spec, found), [document] * len(found)
    if asked.grid or asked.listed:
        raise CannotSweepError(Problem("sweep_of_array", "/parameters"))
    found = arrays.values(array)
    specs = expand(arrays.with_shared_variables(spec, array, number), found, array.indexes)
    return found, specs, [arrays.one(document, array, number, index) for index in array.indexes]


def _ready(user: User, asked: SweepRequest, document: Document, jobs: int) -> submission.ResolvedJob:
    if wrong := submission.find_problems(user, document, asked.origin, asked.template):
        raise Refused(wrong)
    made = submission.resolve_job(user, document, asked.place, asked.origin)
    if excess := submission.find_excess_of(made.limits, made.document.parsed.spec, jobs=jobs):
        raise Refused(excess)
    return made


def _store(user: User, asked: SweepRequest, key: str | None, made: _Made) -> Sweep:
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
        **_objective_columns(asked.objective),
    )
    for number, (values, ready) in enumerate(zip(made.found, made.ready, strict=True), 1):
        request = SubmissionRequest(origin=asked.origin, made_of=ready.uses, template=asked.template)
        job = submission.store(user, ready.document, ready.quota, request)
        _enter(sweep, job, number, values)
    fault("accept.before_commit")
    return sweep


def _objective_columns(objective: Objective | None) -> dict[str, Any]:
    if objective is None:
        return {}
    return {
        "objective": objective.metric,
        "goal": objective.goal,
        "stop_after": objective.stop_after,
        "stop_jobs": objective.stop_jobs,
    }


def _enter(sweep: Sweep, job: Job, number: int, values: Values, round_: int = 1) -> None:
    """Make the job one of the sweep; it waits for its turn when as many as may are under way."""
    waits = dependencies.under_way(sweep) >= sweep.at_once
    SweepRun.objects.create(
        sweep=sweep, job=job, number=number, round=round_, values=dict(values), waits=waits
    )
    if waits:
        ledger.hold_for_dependencies(transitions.key_of(job.public_id, job.attempt_number))


def latest(sweep: Sweep) -> list[SweepRun]:
    """Return the latest job of each combination, in their order."""
    rows = sweep.runs.select_related("job", "job__owner", "job__cluster", "job__quota", "job__workspace")
    return list({row.number: row for row in rows.order_by("number", "round")}.values())


def count_states(sweeps: Sequence[Sweep]) -> dict[int, Counter[str]]:
    """Return how many of each sweep's jobs are in which state, by its key; one query.

    Of several rounds the last counts.
    """
    rows = SweepRun.objects.filter(sweep__in=sweeps).order_by("round")
    last = {
        (sweep, number): state for sweep, number, state in rows.values_list("sweep", "number", "job__state")
    }
    counts: dict[int, Counter[str]] = {}
    for (sweep, _number), state in last.items():
        counts.setdefault(sweep, Counter())[state] += 1
    return counts


def stop(user: User, sweep: Sweep) -> int:
    """Ask for the end of all its jobs, those that wait first; return how many.  Raises Forbidden."""
    require(user, Verb.CONTROL, sweep)
    going = [run for run in latest(sweep) if State(run.job.state) not in TERMINAL]
    for run in sorted(going, key=lambda run: (not run.waits, -run.number)):
        submission.stop(user, run.job)
        fault("sweep.stopping")
    return len(going)


def again(user: User, sweep: Sweep) -> list[Job]:
    """Run the failed jobs again, all or none; return the new jobs.  Raises Forbidden, Refused."""
    require(user, Verb.CONTROL, sweep)
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
    """Change how many of its jobs may run at once; running jobs go on.  Raises Forbidden."""
    require(user, Verb.CONTROL, sweep)
    with transaction.atomic():
        Sweep.objects.filter(pk=sweep.pk).update(at_once=at_once)
        dependencies.queue_next(sweep.pk)
