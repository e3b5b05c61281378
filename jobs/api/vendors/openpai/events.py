"""Events of a job."""

from __future__ import annotations

from typing import Any, Final

from jobs.api.vendors.openpai.job_names import find_job, name_of
from jobs.api.vendors.openpai.job_summaries import to_ms
from jobs.api.vendors.operations import Call, JsonObject, Location, Operation, Parameter
from jobs.models import Event, Job
from jobs.states import ReplicaState, State
from quotas.access import Verb

MOST: Final = 10_000
"""Events of an answer, the newest ones."""

_BAD: Final = frozenset({State.FAILED.value, State.LOST.value, ReplicaState.FAILED.value})
_WARNINGS: Final = frozenset({Event.Kind.LOST, Event.Kind.IDLE_WARNED, Event.Kind.NOT_EXTENDED})


def list_events(call: Call) -> JsonObject:
    """Return the job's events, oldest first; those of one type where the query names it."""
    job = find_job(call, Verb.READ)
    rows = list(Event.objects.filter(job=job).order_by("-pk")[:MOST])
    found = [_render(job, event) for event in reversed(rows)]
    if wanted := call.values["type"]:
        found = [event for event in found if event["type"] == wanted]
    return {"totalCount": len(found), "data": found}


def _render(job: Job, event: Event) -> dict[str, Any]:
    params = event.params if isinstance(event.params, dict) else {}
    role, index = params.get("role"), params.get("index")
    kind = Event.Kind(event.kind)
    is_bad = kind in _WARNINGS or params.get("state") in _BAD
    return {
        "uid": str(event.pk),
        "frameworkName": name_of(job),
        "podUid": f"{job.public_id}.{role}-{index}" if role is not None else "",
        "taskroleName": role or "",
        "taskName": f"{role}-{index}" if role is not None else "",
        "taskIndex": index,
        "type": "Warning" if is_bad else "Normal",
        "reason": "".join(word.title() for word in kind.value.split("_")),
        "message": str(kind.label),
        "firstTimestamp": to_ms(event.at),
        "lastTimestamp": to_ms(event.at),
        "count": 1,
        "sourceComponent": "job-console",
        "sourceHost": "",
    }


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "getEvents",
        "GET",
        "rest-server/api/v2/jobs/<str:job>/events",
        list_events,
        parameters=(
            Parameter("job", location=Location.PATH, required=True),
            Parameter("type"),
        ),
    ),
)
