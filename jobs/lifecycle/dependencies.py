"""What the end of a job means for those that wait for it, decided in the transaction that ends it.

A job that is lost has not ended: whoever waits for it waits until it reappears, or is settled by hand.
Whoever can start no more is ended by a worker (`jobs.submission.afters.settle`), so that one transaction ends
one job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from django.db.models import F

from jobs.live import queue
from jobs.models import Attempt, Dependency, Job, Sweep, SweepRun
from jobs.states import FINAL, TERMINAL, Reason, ReasonCode, State
from quotas import ledger

_ENDED: Final = [state.value for state in TERMINAL]


def outcome(when: str, state: State, code: str) -> Dependency.State:
    """What a job in `state`, for the reason `code`, is to one that waits for it."""
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
    """`other` has a new state: say what that means for those that wait for it, and let go who may start."""
    rows = list(Dependency.objects.filter(other=other, state=Dependency.State.OPEN))
    for row in rows:
        row.state = outcome(row.when, State(other.state), other.reason_code)
    decided = [row for row in rows if row.state != Dependency.State.OPEN]
    for row in decided:
        Dependency.objects.filter(pk=row.pk, state=Dependency.State.OPEN).update(state=row.state)
    let_go({row.job_id for row in decided})
    if State(other.state) in TERMINAL:
        run = SweepRun.objects.filter(job=other).first()
        if run is not None:
            next_of(run.sweep_id)


def under_way(sweep: Sweep) -> int:
    """How many jobs of the sweep run or stand in line."""
    going = SweepRun.objects.filter(sweep=sweep, waits=False).exclude(job__state__in=_ENDED)
    return going.count()


def next_of(sweep_id: int) -> None:
    """Let as many jobs of the sweep go as may be under way; those that ended while they waited are passed."""
    sweep = Sweep.objects.select_for_update(no_key=True).get(pk=sweep_id)
    waiting = SweepRun.objects.filter(sweep=sweep, waits=True)
    waiting.filter(job__state__in=_ENDED).update(waits=False)
    free = max(0, sweep.at_once - under_way(sweep))
    turn = list(waiting.order_by("round", "number").values_list("pk", "job_id")[:free])
    SweepRun.objects.filter(pk__in=[pk for pk, _job in turn]).update(waits=False)
    let_go({job_id for _pk, job_id in turn})


def let_go(job_ids: Collection[int]) -> None:
    """Of these jobs, those that wait for nobody any more stand in line from now on."""
    if not job_ids:
        return
    unmet = Dependency.objects.filter(job__in=job_ids).exclude(state=Dependency.State.MET)
    turns = SweepRun.objects.filter(job__in=job_ids, waits=True)
    kept = {*unmet.values_list("job_id", flat=True), *turns.values_list("job_id", flat=True)}
    free = set(job_ids) - kept
    for attempt in Attempt.objects.filter(job__in=free, number=F("job__attempt_number")):
        ledger.let_go(attempt.key)
    for cluster_id in set(Job.objects.filter(pk__in=job_ids).values_list("cluster_id", flat=True)):
        queue.kick_on_commit("drain", cluster_id)


def told(job: Job, row: Dependency) -> dict[str, str | int | None]:
    """What fills the sentence about one dependency; a job of another workspace is told by its id alone."""
    other = row.other
    if other is None:
        return {row.when: row.named}
    known = other.workspace_id == job.workspace_id
    return {row.when: other.name if known else other.public_id, "other_state": other.state}


def reasons(jobs: Iterable[Job]) -> Mapping[int, Reason]:
    """For those of `jobs` that wait for others: why, with what those do now; a few queries."""
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
            {**told(by_id[pk], first), **({"more": len(rest)} if rest else {})},
        )
        for pk, (first, *rest) in open_rows.items()
    }
