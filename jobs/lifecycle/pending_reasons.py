"""Pending reasons of jobs: the stored reason of a job's row, and the current numbers of its queue.

A job's row has the reason without the numbers that change with every other job: its position, the free
resources, the jobs ahead.  Those are in the cluster's queue snapshot of the last admission pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from django.utils.translation import gettext as _

from jobs import messages
from jobs.lifecycle import dependencies
from jobs.lifecycle.transitions import key_of
from jobs.models import Job
from jobs.states import Reason, ReasonCode, State
from quotas.admission import Why, queue_snapshot
from quotas.admission.queue_snapshot import Queue, Verdict
from quotas.admission.whatif import Trial

CODES: Final[Mapping[Why, ReasonCode]] = {
    Why.QUOTA: ReasonCode.WAITING_QUOTA,
    Why.QUOTA_TURN: ReasonCode.WAITING_QUOTA_TURN,
    Why.PERSON: ReasonCode.WAITING_PERSON,
    Why.HOURS: ReasonCode.WAITING_HOURS,
    Why.EXCEEDS_QUOTA: ReasonCode.EXCEEDS_QUOTA,
    Why.EXCEEDS_CLUSTER: ReasonCode.EXCEEDS_CLUSTER,
    Why.NO_SUCH_GPU: ReasonCode.NO_SUCH_GPU,
    Why.NO_SUCH_NODE: ReasonCode.NO_SUCH_NODE,
    Why.CAPACITY: ReasonCode.WAITING_CAPACITY,
    Why.TURN: ReasonCode.WAITING_TURN,
    Why.COMING: ReasonCode.WAITING_COMING,
    Why.IDLE: ReasonCode.WAITING_IDLE,
    Why.OUTBID: ReasonCode.OUTBID,
    Why.ENGINE_FULL: ReasonCode.ENGINE_FULL,
    Why.NO_NODES: ReasonCode.CLUSTER_AWAY,
    Why.HELD: ReasonCode.HELD,
    Why.OTHERS: ReasonCode.WAITING_OTHERS,
    Why.NOT_YET: ReasonCode.NOT_YET,
    Why.FROZEN: ReasonCode.FROZEN,
    Why.MAINTENANCE: ReasonCode.MAINTENANCE,
}


def stored_reason(cluster_name: str, verdict: Verdict) -> Reason:
    """Return a verdict as the job's own row stores it."""
    why, params = queue_snapshot.stored_part(verdict)
    return Reason(CODES[why], {"cluster": cluster_name, **params})


def current_reason(cluster_name: str, verdict: Verdict) -> Reason:
    """Return a verdict with all its numbers."""
    position: dict[str, str | int | None] = {"position": verdict.position} if verdict.position else {}
    if position and verdict.why in queue_snapshot.OF_A_QUOTA:
        position["line"] = "quota"
    return Reason(CODES[verdict.why], {"cluster": cluster_name, **verdict.params, **position})


def outlook(cluster_name: str, outcome: Trial) -> str:
    """Return one sentence on whether a job that is not submitted yet would start."""
    if outcome.verdict is None:
        nodes = ", ".join(node for node, _amounts in outcome.decision.placement)
        if outcome.decision.counts is not None:
            text = _("Can start now on %(nodes)s, with %(replicas)s replicas.")
            return text % {"nodes": nodes, "replicas": sum(outcome.decision.counts)}
        text = _("Can start now on %(nodes)s.") if nodes else _("Can be submitted to %(cluster)s now.")
        return text % {"nodes": nodes, "cluster": cluster_name}
    why = current_reason(cluster_name, outcome.verdict)
    return messages.reason_message(why.code, why.params)


def load_reasons(jobs: Iterable[Job]) -> None:
    """Set `told` of the queued ones of `jobs`: the reason with the current numbers; one query for all.

    Their clusters have to be loaded.
    """
    rows = [job for job in jobs if job.state == State.QUEUED]
    queues = queue_snapshot.queues_of({job.cluster_id for job in rows}) if rows else {}
    for job in rows:
        verdict = verdict_in(queues, job)
        if verdict is not None and not has_better_reason(job, verdict):
            job.told = current_reason(job.cluster.name, verdict)
    waits = [job for job in rows if reason_of(job).code == ReasonCode.WAITING_OTHERS]
    for pk, reason in (dependencies.reasons(waits) if waits else {}).items():
        next(job for job in waits if job.pk == pk).told = reason


def has_better_reason(job: Job, verdict: Verdict) -> bool:
    """Tell whether the job's row has the better reason: who holds it, or why its retry is delayed.

    The row of a held job is newer than a verdict from before the hold.
    """
    if job.reason_code == ReasonCode.HELD:
        return True
    return verdict.why is Why.NOT_YET and job.reason_code not in {ReasonCode.NEW, ReasonCode.NOT_YET}


def reason_of(job: Job) -> Reason:
    """Return the reason of the job's state: the one with current numbers, or the stored one."""
    return job.told or Reason(ReasonCode(job.reason_code), job.reason_params)


def verdict_in(queues: Mapping[int, Queue], job: Job) -> Verdict | None:
    """Return admission's last verdict on a queued job; None when it has none yet."""
    if job.state != State.QUEUED or job.cluster_id not in queues:
        return None
    return queues[job.cluster_id].verdicts.get(key_of(job.public_id, job.attempt_number))
