"""GetJobEvents and GetPodEvents: events as plain strings."""

from __future__ import annotations

from typing import Final

from django.db.models import QuerySet

from jobs.api.vendors.operations import Call, JsonObject, Kind, Location, Operation, Parameter, render_time
from jobs.api.vendors.pai_dlc.identifiers import find_job, find_replica, pod_uid
from jobs.messages.events import event_message
from jobs.models import Event
from quotas.access import Verb

MOST_EVENTS: Final = 2000

JOB_ID: Final = Parameter("JobId", location=Location.PATH, required=True)
POD_ID: Final = Parameter("PodId", location=Location.PATH, required=True)
POD_UID: Final = Parameter("PodUid")
START_TIME: Final = Parameter("StartTime", Kind.TIME)
END_TIME: Final = Parameter("EndTime", Kind.TIME)
_PERIOD: Final = (
    START_TIME,
    END_TIME,
    Parameter("MaxEventsNum", Kind.INTEGER, default=MOST_EVENTS, least=1, most=MOST_EVENTS),
)


def get_job_events(call: Call) -> JsonObject:
    """Answer the newest events of a job, in their order."""
    job = find_job(call, call.values["JobId"], Verb.READ)
    rows = Event.objects.filter(job=job)
    return {"JobId": call.values["JobId"], "Events": _render(call, rows)}


def get_pod_events(call: Call) -> JsonObject:
    """Answer the newest events of a pod, in their order; with PodUid, of that run's attempt alone."""
    job = find_job(call, call.values["JobId"], Verb.READ)
    replica = find_replica(call, job, call.values["PodId"])
    rows = Event.objects.filter(job=job, params__role=replica.role, params__index=replica.index)
    if call.values["PodUid"]:
        rows = rows.filter(attempt=replica.attempt.number)
    return {
        "JobId": call.values["JobId"],
        "PodId": call.values["PodId"],
        "PodUid": pod_uid(job, replica),
        "Events": _render(call, rows),
    }


def _render(call: Call, rows: QuerySet[Event]) -> list[str]:
    start, end = call.values["StartTime"], call.values["EndTime"]
    if start is not None:
        rows = rows.filter(at__gte=start)
    if end is not None:
        rows = rows.filter(at__lte=end)
    newest = rows.select_related("actor").order_by("-pk")[: call.values["MaxEventsNum"]]
    return [_render_event(event) for event in reversed(newest)]


def _render_event(event: Event) -> str:
    text, detail = event_message(Event.Kind(event.kind), event.params)
    actor = f" ({event.actor.get_username()})" if event.actor else ""
    return f"{render_time(event.at)} {text}{actor}{': ' if detail else ''}{detail}"


OPERATIONS: Final = (
    Operation(
        "GetJobEvents", "GET", "api/v1/jobs/<str:JobId>/events", get_job_events, parameters=(JOB_ID, *_PERIOD)
    ),
    Operation(
        "GetPodEvents",
        "GET",
        "api/v1/jobs/<str:JobId>/pods/<str:PodId>/events",
        get_pod_events,
        parameters=(JOB_ID, POD_ID, POD_UID, *_PERIOD),
    ),
)
"""The operations."""
