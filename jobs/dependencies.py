"""What the end of a job means for those that wait for it, decided in the transaction that ends it.

A job that is lost has not ended: whoever waits for it waits until it reappears, or is settled by hand.
Whoever can start no more is ended by a worker (`jobs.afters.settle`), so that one transaction ends one job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from django.db.models import F

from jobs import queue
from jobs.models import Attempt, Dependency, Job
from jobs.states import FINAL, Reason, ReasonCode, State
from quotas import ledger


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


def let_go(job_ids: Collection[int]) -> None:
    """Of these jobs, those that wait for nobody any more stand in line from now on."""
    if not job_ids:
        return
    unmet = Dependency.objects.filter(job__in=job_ids).exclude(state=Dependency.State.MET)
    free = set(job_ids) - set(unmet.values_list("job_id", flat=True))
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
    """For those of `jobs` that wait for others: why, with what those do now; one query for all of them."""
    by_id = {job.pk: job for job in jobs}
    rows = Dependency.objects.filter(job__in=by_id, state=Dependency.State.OPEN).select_related("other")
    open_rows: dict[int, list[Dependency]] = {}
    for row in rows:
        open_rows.setdefault(row.job_id, []).append(row)
    return {
        pk: Reason(
            ReasonCode.WAITING_OTHERS,
            {**told(by_id[pk], first), **({"more": len(rest)} if rest else {})},
        )
        for pk, (first, *rest) in open_rows.items()
    }
