"""Why a job waits, from one place: what its own row keeps, and the numbers of the moment beside it.

A job's row has the reason without the numbers that change with everybody else's coming and going: its
place, what is free, what stands ahead.  Those are in the cluster's standing, which the last pass left.
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
from quotas.admission import Why, standings
from quotas.admission.standings import Queue, Verdict
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


def kept(cluster_name: str, verdict: Verdict) -> Reason:
    """A verdict as the job's own row keeps it."""
    why, params = standings.lasting(verdict)
    return Reason(CODES[why], {"cluster": cluster_name, **params})


def of_now(cluster_name: str, verdict: Verdict) -> Reason:
    """A verdict with all its numbers."""
    place: dict[str, str | int | None] = {"position": verdict.position} if verdict.position else {}
    if place and verdict.why in standings.OF_A_QUOTA:
        place["line"] = "quota"
    return Reason(CODES[verdict.why], {"cluster": cluster_name, **verdict.params, **place})


def outlook(cluster_name: str, trial: Trial) -> str:
    """What would become of a job that is not submitted yet, in one sentence."""
    if trial.verdict is None:
        nodes = ", ".join(node for node, _amounts in trial.decision.placement)
        text = _("It would start now on %(nodes)s.") if nodes else _("It would be handed to %(cluster)s now.")
        return text % {"nodes": nodes, "cluster": cluster_name}
    why = of_now(cluster_name, trial.verdict)
    return messages.reason_message(why.code, why.params)


def tell(jobs: Iterable[Job]) -> None:
    """Let each of `jobs` that waits know why with the numbers of the moment; one query for all of them.

    They have to come with their clusters.
    """
    rows = [job for job in jobs if job.state == State.QUEUED]
    queues = standings.queues_of({job.cluster_id for job in rows}) if rows else {}
    for job in rows:
        verdict = verdict_in(queues, job)
        if verdict is not None and not says_more(job, verdict):
            job.told = of_now(job.cluster.name, verdict)
    waits = [job for job in rows if reason_of(job).code == ReasonCode.WAITING_OTHERS]
    for pk, reason in (dependencies.reasons(waits) if waits else {}).items():
        next(job for job in waits if job.pk == pk).told = reason


def says_more(job: Job, verdict: Verdict) -> bool:
    """Whether the job's own row says better why it waits: who holds it, or why it pauses before it is tried
    again.  The row of a held job is newer than a verdict from before the hold.
    """
    if job.reason_code == ReasonCode.HELD:
        return True
    return verdict.why is Why.NOT_YET and job.reason_code not in {ReasonCode.NEW, ReasonCode.NOT_YET}


def reason_of(job: Job) -> Reason:
    """Why the job is in its state: what it was told last, or what its row keeps."""
    return job.told or Reason(ReasonCode(job.reason_code), job.reason_params)


def verdict_in(queues: Mapping[int, Queue], job: Job) -> Verdict | None:
    """What admission said of a waiting job last; None when it has not looked since."""
    if job.state != State.QUEUED or job.cluster_id not in queues:
        return None
    return queues[job.cluster_id].verdicts.get(key_of(job.public_id, job.attempt_number))
