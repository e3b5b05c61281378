"""Restarts of failed replicas alone: decided once by the same table as those of whole jobs, then ordered.

The decision is a row, stored before its order: a worker that is killed in between leaves the order to the
next observation, and the backend takes only the first order for a start that failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from jobs.backends.base import Backend, Handle, Observation, ReplicaRef, ReplicaSeen, RestartingReplicas
from jobs.fault_tolerance.decisions import NODE_FAULTS, Fault
from jobs.fault_tolerance.policy import policy_of
from jobs.faults import fault
from jobs.lifecycle import retries, transitions
from jobs.models import Attempt, Event, JobFile, ReplicaRestart
from jobs.scheduling import fault_diagnosis, fault_history, node_faults
from jobs.states import Phase, ReplicaState, State

SCOPE: Final = "replica"
"""Of an event: what was restarted."""


def answer(backend: Backend, attempt: Attempt, seen: Observation) -> None:
    """Decide about the replicas that wait for it, and order what is due.  Raises Unreachable."""
    waiting = [replica for replica in seen.replicas if replica.failed_run is not None]
    if not waiting or not isinstance(backend, RestartingReplicas):
        return
    rows = ReplicaRestart.objects.filter(attempt=attempt, run=seen.run)
    known = {(row.role, row.index, row.failed_run): row for row in rows}
    for row in _decisions(attempt, seen, waiting, known):
        if row.due_at <= timezone.now():
            fault("restart.before_order")
            replica = ReplicaRef(row.role, row.index, row.run)
            backend.order_restart(Handle(attempt.handle), replica, row.failed_run, restarts=row.restarts)
            fault("restart.after_order")


def _decisions(
    attempt: Attempt,
    seen: Observation,
    waiting: Iterable[ReplicaSeen],
    known: dict[tuple[str, int, int], ReplicaRestart],
) -> Iterable[ReplicaRestart]:
    for replica in waiting:
        assert replica.failed_run is not None
        row = known.get((replica.role, replica.index, replica.failed_run.run))
        row = row or _decide(attempt, seen, replica)
        if row is not None:
            yield row


def _decide(attempt: Attempt, seen: Observation, replica: ReplicaSeen) -> ReplicaRestart | None:
    """Store what is done about a replica; None for an attempt that is to end as a whole.

    What is not restarted alone fails the attempt, whose end is then decided.
    """
    failed = replica.failed_run
    policy = policy_of(JobFile.objects.get(job=attempt.job_id).spec)
    found = _diagnose(attempt, replica)
    if failed is None or policy is None or found is None:
        return None
    with transaction.atomic():
        job = transitions.lock_job(attempt.job_id)
        fresh = Attempt.objects.get(pk=attempt.pk)
        if fresh.end_kind or not fresh.live or job.attempt_number != fresh.number:
            return None
        history = fault_history.list_earlier(fresh, found)
        decision = history.decide(policy, found)
        restarts = decision.restarts and found.code not in (*NODE_FAULTS, node_faults.DRAINED)
        pause = retries.delay(failed.run) if restarts else timedelta()
        row, is_new = ReplicaRestart.objects.get_or_create(
            attempt=fresh,
            run=seen.run,
            role=replica.role,
            index=replica.index,
            failed_run=failed.run,
            defaults={"fault": found.to_json(), "restarts": restarts, "due_at": timezone.now() + pause},
        )
        if is_new and restarts:
            params = {
                **found.to_json(),
                "scope": SCOPE,
                "rule": decision.rule.value,
                "restarts": True,
                "used": decision.used,
                "limit": policy.restarts,
            }
            transitions.record(job, Event.Kind.FAULT, params=params)
        fault("restart.before_commit")
    return row


def _diagnose(attempt: Attempt, replica: ReplicaSeen) -> Fault | None:
    """Return why the replica failed, as if the attempt had failed with it."""
    failed = replica.failed_run
    assert failed is not None
    ended = replace(
        replica,
        state=ReplicaState.FAILED,
        reason=failed.reason,
        exit_code=failed.exit_code,
        signal=failed.signal,
        ended_at=failed.ended_at,
    )
    whole = Observation(State.FAILED, failed.reason, phase=Phase.RUNNING, replicas=(ended,))
    return fault_diagnosis.diagnose(attempt, whole)
