"""AIHC's names for what the console has: ids of jobs and pods, statuses, priorities, times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import Q
from django.http import Http404

from jobs.access.sessions import current_replicas, safe_role
from jobs.api.vendors.operations import Call, InvalidParameters, WrongValue
from jobs.models import Job, Replica
from jobs.states import LIVE, Phase, ReplicaState, State
from quotas.access import Verb

MANAGED_POOL: Final = "aihc-serverless"
"""The resource pool id of all managed pools together: here it stands for any cluster."""

_PUBLIC_ID: Final = re.compile(r"job-(?P<id>[a-z0-9]{1,16})")
_POD: Final = re.compile(r".*-(?P<index>[0-9]{1,6})", re.DOTALL)

STATUSES: Final[Mapping[State, str]] = {
    State.QUEUED: "Created",
    State.SUBMITTING: "Scheduled",
    State.PENDING: "Scheduled",
    State.RUNNING: "Running",
    State.SUCCEEDED: "Succeeded",
    State.FAILED: "Failed",
    State.STOPPED: "Stopped",
    State.LOST: "Abnormal",
}
"""The status of a job in each state, unless its phase has one of `PHASES`."""

PHASES: Final[Mapping[Phase, str]] = {Phase.RESTARTING: "Restarting", Phase.STOPPING: "Stopping"}
"""Statuses of jobs that run, by their phase."""

_SYNONYMS: Final = {"starting": "scheduled"}

POD_PHASES: Final[Mapping[ReplicaState, str]] = {
    ReplicaState.WAITING: "Pending",
    ReplicaState.RUNNING: "Running",
    ReplicaState.SUCCEEDED: "Succeeded",
    ReplicaState.FAILED: "Failed",
    ReplicaState.STOPPED: "Failed",
}

PRIORITIES: Final[Mapping[str, int]] = {"high": 8, "normal": 5, "low": 2}
"""The console's priority (1 to 9) for each word, as the job file's dialect has them."""


def job_id(job: Job) -> str:
    """Return the id under which AIHC's clients know a job."""
    return f"job-{job.public_id}"


def pod_name(job: Job, role: str, index: int) -> str:
    """Return the name under which AIHC's clients know a replica."""
    return f"{job_id(job)}-{safe_role(role)}-{index}"


def status_of(job: Job) -> str:
    """Return a job's status."""
    state = State(job.state)
    if state in LIVE and job.phase in PHASES:
        return PHASES[Phase(job.phase)]
    return STATUSES[state]


def filter_status(status: str) -> Q:
    """Return the condition of jobs with a status.  Raises InvalidParameters."""
    wanted = _SYNONYMS.get(status.lower(), status.lower())
    live = [state.value for state in LIVE]
    for phase, name in PHASES.items():
        if name.lower() == wanted:
            return Q(state__in=live, phase=phase)
    states = [state.value for state, name in STATUSES.items() if name.lower() == wanted]
    if not states:
        names = " | ".join(dict.fromkeys([*STATUSES.values(), *PHASES.values()]))
        raise InvalidParameters([WrongValue("status", names, value=status)])
    return Q(state__in=states) & ~Q(state__in=live, phase__in=list(PHASES))


def priority_word(priority: int) -> str:
    """Return the word for a priority: 7 to 9 is high, 4 to 6 normal, 1 to 3 low."""
    return "high" if priority > 6 else "normal" if priority > 3 else "low"


_MILLISECONDS: Final = 10**11
"""Numbers from here on count milliseconds: as seconds they would be in the year 5138."""


def read_time(name: str, value: Any) -> datetime | None:
    """Return the time of a parameter: seconds or milliseconds since the epoch, or ISO 8601.

    Numbers may be texts.  Raises InvalidParameters.
    """
    if value is None or value == "":
        return None
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    try:
        if re.fullmatch(r"[0-9]{1,15}", text, re.ASCII):
            number = int(text)
            return datetime.fromtimestamp(number / 1000 if number >= _MILLISECONDS else number, UTC)
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError) as error:
        expected = "seconds since the epoch, or a time as 2006-01-02T15:04:05Z"
        raise InvalidParameters([WrongValue(name, expected)]) from error


def find_job(call: Call, verb: Verb) -> Job:
    """Return the job of a call.  Raises Http404, PermissionDenied or MissingScopeError.

    It has to be in the resource pool that the call names.
    """
    match = _PUBLIC_ID.fullmatch(call.values["jobId"])
    if match is None:
        raise Http404
    job = call.find_job(match["id"], verb)
    if call.values["resourcePoolId"] not in {job.cluster.slug, MANAGED_POOL}:
        raise Http404
    return job


def find_replica(job: Job, name: str) -> Replica:
    """Return a replica of the current run by the name of its pod; its end, ROLE-INDEX, will do.

    Raises Http404.
    """
    match = _POD.fullmatch(name)
    rows = current_replicas(job).filter(index=int(match["index"])) if match else ()
    for row in rows:
        short = f"{safe_role(row.role)}-{row.index}"
        if name in {pod_name(job, row.role, row.index), f"{job.name}-{short}", short}:
            return row
    raise Http404
