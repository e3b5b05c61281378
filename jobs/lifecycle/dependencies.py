"""Dependencies on a job and turns in a sweep, decided in the transaction that ends the job.

A job that is lost has not ended: jobs that depend on it wait until it reappears, or is settled by hand.  A
job that can start no more is ended by a worker (`jobs.submission.dependencies.settle`), so that one
transaction ends one job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from django.db.models import F

from jobs.live import triggers
from jobs.models import Attempt, Dependency, Job, Sweep, SweepRun
from jobs.states import FINAL, TERMINAL, Reason, ReasonCode, State
from quotas import ledger

_ENDED: Final = [state.value for state in TERMINAL]


def outcome(when: str, state: State, code: str) -> Dependency.State:
    """Return the state of a dependency `when` on a job in `state` for the reason `code`."""
    if state not in FINAL:
        return Dependency.State.OPEN
    failed = state is State.FAILED or code == ReasonCode.TIME_LIMIT
    met = {
        Dependency.When.SUCCEEDED: state is State.SUCCEEDED,
        Dependency.When.FAILED: failed,
        Dependency.When.ENDED: True,
    }[Dependency.When(when)]
    return Dependency.State.MET if met else Dependency.State.NEVER


def decide(other: Job) -> None:
    """Decide the dependencies on `other`, which has a new state, and queue the jobs that may start now."""
    rows = list(Dependency.objects.filter(other=other, state=Dependency.State.OPEN))
    for row in rows:
        row.state = outcome(row.when, State(other.state), other.reason_code)
    decided = [row for row in rows if row.state != Dependency.State.OPEN]
    for row in decided:
        Dependency.objects.filter(pk=row.pk, state=Dependency.State.OPEN).update(state=row.state)
    queue_ready({row.job_id for row in decided})
    if State(other.state) in TERMINAL:
        run = SweepRun.objects.filter(job=other).first()
        if run is not None:
            queue_next(run.sweep_id)


def under_way(sweep: Sweep) -> int:
    """Return how many jobs of the sweep are queued or run."""
    return SweepRun.objects.filter(sweep=sweep, waits=False).exclude(job__state__in=_ENDED).count()


def queue_next(sweep_id: int) -> None:
    """Queue as many waiting jobs of the sweep as may be under way; those that have ended are skipped."""
    sweep = Sweep.objects.select_for_update(no_key=True).get(pk=sweep_id)
    waiting = SweepRun.objects.filter(sweep=sweep, waits=True)
    waiting.filter(job__state__in=_ENDED).update(waits=False)
    free = max(0, sweep.at_once - under_way(sweep))
    turn = list(waiting.order_by("round", "number").values_list("pk", "job_id")[:free])
    SweepRun.objects.filter(pk__in=[pk for pk, _job in turn]).update(waits=False)
    queue_ready({job_id for _pk, job_id in turn})


def queue_ready(job_ids: Collection[int]) -> None:
    """Queue those of these jobs that wait for no other job any more."""
    if not job_ids:
        return
    unmet = Dependency.objects.filter(job__in=job_ids).exclude(state=Dependency.State.MET)
    turns = SweepRun.objects.filter(job__in=job_ids, waits=True)
    waiting = {*unmet.values_list("job_id", flat=True), *turns.values_list("job_id", flat=True)}
    free = set(job_ids) - waiting
    for attempt in Attempt.objects.filter(job__in=free, number=F("job__attempt_number")):
        ledger.release_dependent(attempt.key)
    for cluster_id in set(Job.objects.filter(pk__in=job_ids).values_list("cluster_id", flat=True)):
        triggers.trigger_on_commit("drain", cluster_id)


def sentence_params(job: Job, row: Dependency) -> dict[str, str | int | None]:
    """Return the parameters of a dependency's sentence; a job of another workspace has its id as its name."""
    other = row.other
    if other is None:
        return {row.when: row.named}
    known = other.workspace_id == job.workspace_id
    return {row.when: other.name if known else other.public_id, "other_state": other.state}


def reasons(jobs: Iterable[Job]) -> Mapping[int, Reason]:
    """Return the reasons of those of `jobs` that wait for others, with the others' states; a few queries."""
    by_id = {job.pk: job for job in jobs}
    rows = Dependency.objects.filter(job__in=by_id, state=Dependency.State.OPEN).select_related("other")
    open_rows: dict[int, list[Dependency]] = {}
    for row in rows:
        open_rows.setdefault(row.job_id, []).append(row)
    turns = SweepRun.objects.filter(job__in=by_id.keys() - open_rows.keys(), waits=True)
    limits = dict(turns.values_list("job_id", "sweep__at_once"))
    return {pk: Reason(ReasonCode.WAITING_OTHERS, {"at_once": limit}) for pk, limit in limits.items()} | {
        pk: Reason(
            ReasonCode.WAITING_OTHERS,
            {**sentence_params(by_id[pk], first), **({"more": len(rest)} if rest else {})},
        )
        for pk, (first, *rest) in open_rows.items()
    }
