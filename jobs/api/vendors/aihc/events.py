"""Events of jobs and pods as Kubernetes' events, which AIHC shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobs import messages
from jobs.api.vendors.aihc import names
from jobs.api.vendors.operations import Call, JsonObject, render_time
from jobs.models import Event, Job, Replica
from jobs.states import ReplicaState, State
from quotas.access import Verb

MOST_EVENTS: Final = 1000
"""Events that one answer lists; the newest ones, in their order."""

_REASONS: Final[Mapping[Event.Kind, str]] = {
    Event.Kind.SUBMITTED: "SuccessfulCreateJob",
    Event.Kind.ADMITTED: "Scheduled",
    Event.Kind.STARTED: "JobRunning",
    Event.Kind.REPLICA_STARTED: "Started",
    Event.Kind.REPLICA_ENDED: "Completed",
    Event.Kind.REQUEUED: "JobRestarting",
    Event.Kind.QUEUED_AGAIN: "JobRestarting",
}
_OF_PODS: Final = (Event.Kind.REPLICA_STARTED, Event.Kind.REPLICA_ENDED)
_FAILURES: Final = frozenset({State.FAILED.value, ReplicaState.FAILED.value, State.LOST.value})


def describe_job_events(call: Call) -> JsonObject:
    """Return the events of a job."""
    return _list(call, names.find_job(call, Verb.READ), None)


def describe_pod_events(call: Call) -> JsonObject:
    """Return the events of one pod."""
    job = names.find_job(call, Verb.READ)
    return _list(call, job, names.find_replica(job, call.values["podName"]))


def _list(call: Call, job: Job, replica: Replica | None) -> JsonObject:
    rows = Event.objects.filter(job=job)
    if replica is not None:
        where = {"params__role": replica.role, "params__index": replica.index}
        rows = rows.filter(kind__in=_OF_PODS, attempt=job.attempt_number, **where)
    if begin := names.read_time("startTime", call.values["startTime"]):
        rows = rows.filter(at__gte=begin)
    if end := names.read_time("endTime", call.values["endTime"]):
        rows = rows.filter(at__lte=end)
    newest = list(rows.order_by("-pk")[:MOST_EVENTS])
    return {"events": [_render(job, row) for row in reversed(newest)], "total": len(newest)}


def _render(job: Job, row: Event) -> JsonObject:
    kind = Event.Kind(row.kind)
    at = render_time(row.at)
    is_warning = kind is Event.Kind.LOST or row.params.get("state") in _FAILURES
    return {
        "reason": _REASONS.get(kind) or "".join(word.capitalize() for word in kind.value.split("_")),
        "message": _describe(job, kind, row.params),
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "type": "Warning" if is_warning else "Normal",
    }


def _describe(job: Job, kind: Event.Kind, params: Mapping[str, Any]) -> str:
    """Return the sentence of an event: what happened, to which pod, and why."""
    parts = [str(kind.label).capitalize()]
    if kind in _OF_PODS:
        parts.append(names.pod_name(job, str(params.get("role", "")), int(params.get("index", 0))))
    if kind is Event.Kind.REPLICA_STARTED and params.get("node"):
        parts.append(str(params["node"]))
    if kind is Event.Kind.REPLICA_ENDED:
        parts.append(messages.exit_message(params.get("exit_code"), params.get("signal")))
    if code := params.get("reason"):
        parts.append(messages.reason_message(code, params))
    if why := params.get("why"):
        parts.append(str(why))
    return ": ".join(part for part in parts if part)
