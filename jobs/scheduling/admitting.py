"""Admission as workers carry it out: its decisions become states, reservations and reasons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import structlog

from jobs.faults import fault
from jobs.lifecycle import transitions, waiting
from jobs.live import bus
from jobs.models import Attempt, Event, Job
from jobs.states import TERMINAL, EndKind, Phase, Reason, ReasonCode, State
from quotas import admission, ledger
from quotas.admission import snapshot, standings
from quotas.admission.decide import NODE
from quotas.admission.standings import Verdict
from quotas.models import Cluster, Request

log = structlog.get_logger(__name__)

AT_ONCE: Final = 500


def admit(cluster_id: int) -> int:
    """Decide about everything that waits or gives back on the cluster; answers how many were admitted.

    On a cluster that takes no jobs everything stays as it is.
    """
    with ledger.locked(cluster_id) as cluster:
        if not cluster.enabled:
            return 0
        now = snapshot.take(cluster)
        before = standings.queue_of(cluster_id)
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
        changed, moved = standings.record(cluster_id, outcome, before)
        _explain(cluster, changed)
        if moved:
            _tell(now)
        fault("admit.before_commit")
        return admitted


def attempts_of(holders: Collection[str]) -> dict[str, Attempt]:
    """The attempts behind these names in the ledger, with their jobs."""
    names = list(holders)
    found: dict[str, Attempt] = {}
    for first in range(0, len(names), AT_ONCE):
        rows = Attempt.objects.filter(key__in=names[first : first + AT_ONCE])
        found |= {attempt.key: attempt for attempt in rows.select_related("job")}
    return found


def _begin(starting: Sequence[admission.Decision]) -> int:
    """QUEUED → SUBMITTING with their reservations, in the caller's transaction: of those that still wait and
    that nobody wants to end.  Answers how many.
    """
    decisions = {each.holder: each for each in starting}
    attempts = Attempt.objects.filter(key__in=decisions)
    jobs = {job.pk: job for job in transitions.all_locked(list(attempts.values_list("job_id", flat=True)))}
    begun = {
        attempt.key: jobs[attempt.job_id]
        for attempt in attempts.filter(end_kind="")  # nobody else says so while the job is locked
        if State(jobs[attempt.job_id].state) is State.QUEUED
        and attempt.number == jobs[attempt.job_id].attempt_number
    }
    ledger.reserve_all(
        [
            ledger.Granted(request, decisions[request.holder].placement, decisions[request.holder].borrowed)
            for request in Request.objects.filter(holder__in=begun)
        ]
    )
    transitions.apply_to_all(
        list(begun.values()),
        State.SUBMITTING,
        Reason(ReasonCode.SENDING),
        phase=Phase.CREATING,
        event=Event.Kind.ADMITTED,
    )
    return len(begun)


def _take_back(attempt: Attempt, taken: admission.TakeBack) -> None:
    """Ask for the attempt's end; its job's retry policy says what follows."""
    if State(attempt.job.state) in TERMINAL:
        return
    kind = EndKind.DRAIN if taken.cause == NODE else EndKind.PREEMPTION
    if transitions.want_end(attempt.job, attempt, kind):
        log.info("taken_back", attempt=attempt.key, cause=taken.cause, by=taken.for_holder)


def _explain(cluster: Cluster, changed: Mapping[str, Verdict]) -> None:
    """Write why they wait into the jobs whose reason is another one now."""
    attempts = attempts_of(changed)
    alike: dict[str, tuple[Reason, list[Job]]] = {}
    for holder, verdict in changed.items():
        attempt = attempts.get(holder)
        if attempt is None or attempt.number != attempt.job.attempt_number:
            continue
        if waiting.says_more(attempt.job, verdict):
            continue
        reason = waiting.kept(cluster.name, verdict)
        key = f"{reason.code}{sorted(reason.params.items(), key=str)}"
        alike.setdefault(key, (reason, []))[1].append(attempt.job)
    for reason, jobs in alike.values():
        transitions.explain_waiting(jobs, reason)


def _tell(now: admission.Snapshot) -> None:
    """Whoever looks at something that waits looks again: positions and numbers have moved."""
    for workspace_id in _workspaces(now):
        bus.publish_on_commit(workspace_id, bus.QUEUE)


def _workspaces(now: admission.Snapshot) -> Iterable[int]:
    return {now.accounts[request.quota_id].workspace_id for request in now.waiting}
