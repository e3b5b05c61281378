"""Admission pass of a worker: decisions become states, reservations and reasons."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import structlog

from jobs.faults import fault
from jobs.lifecycle import pending_reasons, transitions
from jobs.live import bus
from jobs.models import Attempt, Event, Job
from jobs.scheduling import elastic_growth
from jobs.states import TERMINAL, EndKind, Phase, Reason, ReasonCode, State
from quotas import admission, ledger
from quotas.admission import queue_snapshot, snapshot
from quotas.admission.decisions import GROWTH, NODE
from quotas.admission.queue_snapshot import Verdict
from quotas.models import Cluster, Request

log = structlog.get_logger(__name__)

AT_ONCE: Final = 500


def admit(cluster_id: int) -> int:
    """Decide about the cluster's queue and preemptions; return how many attempts were admitted.

    On a cluster that takes no jobs nothing changes.
    """
    growing = elastic_growth.find_growing(cluster_id)
    with ledger.lock_cluster(cluster_id) as cluster:
        if not cluster.enabled:
            return 0
        now = snapshot.take(cluster, growing=growing)
        before = queue_snapshot.queue_of(cluster_id)
        if not (now.waiting or now.apart or before.verdicts or now.holdings):
            return 0
        outcome = admission.decide(now)
        starting = [each for each in outcome.decisions if each.admitted]
        parts = range(0, len(starting), AT_ONCE)
        admitted = sum(_begin(starting[first : first + AT_ONCE]) for first in parts)
        attempts = attempts_of({each.holder for each in outcome.taken_back})
        for taken in outcome.taken_back:
            if taken.holder in attempts:
                _take_back(attempts[taken.holder], taken)
        changed, moved = queue_snapshot.record(cluster_id, outcome, before)
        _explain(cluster, changed)
        if moved:
            _tell(now)
        fault("admit.before_commit")
        return admitted


def attempts_of(holders: Collection[str]) -> dict[str, Attempt]:
    """Return the attempts with these keys in the ledger, with their jobs."""
    names = list(holders)
    found: dict[str, Attempt] = {}
    for first in range(0, len(names), AT_ONCE):
        rows = Attempt.objects.filter(key__in=names[first : first + AT_ONCE])
        found |= {attempt.key: attempt for attempt in rows.select_related("job")}
    return found


def _begin(starting: Sequence[admission.Decision]) -> int:
    """Move attempts from QUEUED to SUBMITTING with their reservations, in the caller's transaction.

    Attempts that are no longer queued, or are to end, are left out.  Returns how many were moved.
    """
    decisions = {each.holder: each for each in starting}
    attempts = Attempt.objects.filter(key__in=decisions)
    jobs = {job.pk: job for job in transitions.lock_jobs(list(attempts.values_list("job_id", flat=True)))}
    begun = {
        attempt.key: jobs[attempt.job_id]
        for attempt in attempts.filter(end_kind="")  # nobody else says so while the job is locked
        if State(jobs[attempt.job_id].state) is State.QUEUED
        and attempt.number == jobs[attempt.job_id].attempt_number
    }
    ledger.reserve_all(
        [
            ledger.Granted(
                request,
                decisions[request.holder].placement,
                decisions[request.holder].borrowed,
                decisions[request.holder].counts,
            )
            for request in Request.objects.filter(holder__in=begun)
        ]
    )
    alike: dict[str, tuple[Reason, list[Job]]] = {}
    for holder, job in begun.items():
        counts = decisions[holder].counts
        some = {} if counts is None else {"replicas": sum(counts), "all": job.replicas_total}
        alike.setdefault(str(some), (Reason(ReasonCode.SENDING, some), []))[1].append(job)
    for reason, jobs_alike in alike.values():
        transitions.apply_to_all(
            jobs_alike, State.SUBMITTING, reason, phase=Phase.CREATING, event=Event.Kind.ADMITTED
        )
    return len(begun)


def _take_back(attempt: Attempt, taken: admission.TakeBack) -> None:
    """Ask for the attempt's end; its job's retry policy decides what follows."""
    if State(attempt.job.state) in TERMINAL:
        return
    kind = {NODE: EndKind.DRAIN, GROWTH: EndKind.GROWTH}.get(taken.cause, EndKind.PREEMPTION)
    if transitions.want_end(attempt.job, attempt, kind):
        log.info("taken_back", attempt=attempt.key, cause=taken.cause, by=taken.for_holder)


def _explain(cluster: Cluster, changed: Mapping[str, Verdict]) -> None:
    """Store the pending reason of the jobs for which it has changed."""
    attempts = attempts_of(changed)
    alike: dict[str, tuple[Reason, list[Job]]] = {}
    for holder, verdict in changed.items():
        attempt = attempts.get(holder)
        if attempt is None or attempt.number != attempt.job.attempt_number:
            continue
        if pending_reasons.has_better_reason(attempt.job, verdict):
            continue
        reason = pending_reasons.stored_reason(cluster.name, verdict)
        key = f"{reason.code}{sorted(reason.params.items(), key=str)}"
        alike.setdefault(key, (reason, []))[1].append(attempt.job)
    for reason, jobs in alike.values():
        transitions.explain_waiting(jobs, reason)


def _tell(now: admission.Snapshot) -> None:
    """Have the pages with queued jobs refreshed: positions and numbers have moved."""
    for workspace_id in {now.accounts[request.quota_id].workspace_id for request in now.waiting}:
        bus.publish_on_commit(workspace_id, bus.QUEUE)
