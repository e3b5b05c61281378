"""Why a job waits, from one place: what its own row keeps, and the numbers of the moment beside it.

A job's row has the reason without the numbers that change with everybody else's coming and going: its
place, what is free, what stands ahead.  Those are in the cluster's standing, which the last pass left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from jobs.models import Job
from jobs.states import Reason, ReasonCode, State
from jobs.transitions import key_of
from quotas import standings
from quotas.admission import Why
from quotas.standings import Queue, Verdict

CODES: Final[Mapping[Why, ReasonCode]] = {
    Why.QUOTA: ReasonCode.WAITING_QUOTA,
    Why.PERSON: ReasonCode.WAITING_PERSON,
    Why.HOURS: ReasonCode.WAITING_HOURS,
    Why.EXCEEDS_QUOTA: ReasonCode.EXCEEDS_QUOTA,
    Why.EXCEEDS_CLUSTER: ReasonCode.EXCEEDS_CLUSTER,
    Why.NO_SUCH_GPU: ReasonCode.NO_SUCH_GPU,
    Why.CAPACITY: ReasonCode.WAITING_CAPACITY,
    Why.TURN: ReasonCode.WAITING_TURN,
    Why.COMING: ReasonCode.WAITING_COMING,
    Why.IDLE: ReasonCode.WAITING_IDLE,
    Why.OUTBID: ReasonCode.OUTBID,
    Why.ENGINE_FULL: ReasonCode.ENGINE_FULL,
    Why.NO_NODES: ReasonCode.CLUSTER_AWAY,
    Why.HELD: ReasonCode.HELD,
    Why.NOT_YET: ReasonCode.NOT_YET,
}


def kept(cluster_name: str, verdict: Verdict) -> Reason:
    """A verdict as the job's own row keeps it."""
    why, params = standings.lasting(verdict)
    return Reason(CODES[why], {"cluster": cluster_name, **params})


def of_now(cluster_name: str, verdict: Verdict) -> Reason:
    """A verdict with all its numbers."""
    place = {"position": verdict.position} if verdict.position else {}
    return Reason(CODES[verdict.why], {"cluster": cluster_name, **verdict.params, **place})


def reasons(jobs: Iterable[Job]) -> dict[int, Reason]:
    """Why each of `jobs` is in its state, by primary key; one query for all that wait.

    The jobs have to come with their clusters.
    """
    rows = list(jobs)
    queues = queues_for(rows)
    return {job.pk: reason_in(queues, job) for job in rows}


def queues_for(jobs: Sequence[Job]) -> dict[int, Queue]:
    """The queues in which some of `jobs` wait."""
    clusters = {job.cluster_id for job in jobs if job.state == State.QUEUED}
    return standings.queues_of(clusters) if clusters else {}


def reason_in(queues: Mapping[int, Queue], job: Job) -> Reason:
    """Why `job` is in its state, as far as `queues` say more than its own row."""
    verdict = verdict_in(queues, job)
    if verdict is None:
        return Reason(ReasonCode(job.reason_code), job.reason_params)
    return of_now(job.cluster.name, verdict)


def verdict_in(queues: Mapping[int, Queue], job: Job) -> Verdict | None:
    """What admission said of a waiting job last; None when it has not looked since."""
    if job.state != State.QUEUED or job.cluster_id not in queues:
        return None
    return queues[job.cluster_id].verdicts.get(key_of(job.public_id, job.attempt_number))
