"""Jobs as PAI-DLC answers them: the items of ListJobs, and GetJob's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from django.utils import timezone

from jobs.api.vendors.operations import JsonObject, render_time
from jobs.api.vendors.pai_dlc import statuses
from jobs.api.vendors.pai_dlc.identifiers import job_id
from jobs.dialects.dlc import DIALECT, render_request
from jobs.models import Attempt, Event, Job, JobFile
from jobs.spec import JobSpec
from jobs.states import Reason, ReasonCode, State

RESOURCE_LEVEL: Final = "L0"
_FINISHED: Final[Mapping[State, str]] = {
    State.SUCCEEDED: "GmtSuccessedTime",  # sic
    State.FAILED: "GmtFailedTime",
    State.LOST: "GmtFailedTime",
    State.STOPPED: "GmtStoppedTime",
}
_EMPTY: Final[JsonObject] = {
    "JobSpecs": [],
    "DataSources": [],
    "Envs": {},
    "ThirdpartyLibs": [],
    "ThirdpartyLibDir": "",
    "Settings": {},
}
"""Fields that clients iterate over, whether or not the job has any."""

_NOT_ANSWERED: Final = frozenset({"WorkspaceId", "ResourceId", "Priority", "Accessibility", "DisplayName"})
"""Keys of a request that are answered from the job's row, which may have changed since."""


def render_job(job: Job, attempt: Attempt | None, file: JobFile | None) -> JsonObject:
    """Return the fields that ListJobs and GetJob have in common.

    Without a file, those that every member of the workspace sees.  The owner, workspace, cluster and quota
    have to be loaded.
    """
    return {
        **_EMPTY,
        **_identity(job),
        "Status": statuses.status_of(job),
        **statuses.describe_reason(job),
        **_times(job, attempt),
        "Duration": duration_s(job),
        **(_content(file, job) if file else {}),
    }


def _identity(job: Job) -> JsonObject:
    username = job.owner.get_username()
    return {
        "JobId": job_id(job),
        "DisplayName": job.name,
        "WorkspaceId": job.workspace.slug,
        "WorkspaceName": job.workspace.name,
        "ResourceId": job.quota.slug,
        "ResourceName": job.quota.name,
        "ResourceQuotaName": job.quota.name,
        "ResourceLevel": RESOURCE_LEVEL,
        "ResourceType": "ECS",
        "ClusterId": job.cluster.slug,
        "UserId": username,
        "Username": username,
        "Priority": job.priority,
        "Accessibility": job.visibility,
        "EnabledDebugger": False,
        "IsDeleted": False,
    }


def _times(job: Job, attempt: Attempt | None) -> JsonObject:
    ended = job.ended_at
    moments = {
        "GmtCreateTime": job.created_at,
        "GmtModifiedTime": ended or job.started_at or job.created_at,
        "GmtSubmittedTime": attempt.submitted_at if attempt else None,
        "GmtRunningTime": job.started_at,
        "GmtFinishTime": ended,
    }
    if name := _FINISHED.get(State(job.state)):
        moments[name] = ended
    return {name: render_time(moment) for name, moment in moments.items()}


def duration_s(job: Job) -> int:
    """Return the seconds that a job has run, or ran."""
    if job.started_at is None:
        return 0
    return max(0, int(((job.ended_at or timezone.now()) - job.started_at).total_seconds()))


def _content(file: JobFile, job: Job) -> JsonObject:
    """Return the fields of the job's file, whatever its format; secrets are placeholders in it."""
    spec = file.spec
    extras = file.extras if job.dialect == DIALECT.name else {}
    request = render_request(spec, extras)
    network = request.get("UserVpc")
    if isinstance(network, dict) and "ExtendedCIDRs" in network:
        network["ExtendedCidrs"] = network.pop("ExtendedCIDRs")  # answers spell it otherwise than requests
    answered = {key: value for key, value in request.items() if key not in _NOT_ANSWERED}
    return {**answered, "RestartTimes": _restarts(job, spec)}


def _restarts(job: Job, spec: JobSpec) -> str:
    limit = spec.retry.limit
    done = job.attempt_number - 1
    return str(done) if limit is None else f"{done}/{limit}"


def amounts(spec: JobSpec) -> tuple[int, int, float]:
    """Return the CPU cores (rounded up), GPUs and GiB of memory of the whole job."""
    milli = sum(role.replicas * role.resources.cpu_milli for role in spec.roles)
    gpus = sum(role.replicas * role.resources.gpus for role in spec.roles)
    memory_mib = sum(role.replicas * role.resources.memory_mib for role in spec.roles)
    return -(-milli // 1000), gpus, memory_mib / 1024


def render_history(job: Job, events: Collection[Event]) -> list[JsonObject]:
    """Return StatusHistory: the statuses that the job had, by its events in their order."""
    entries: list[JsonObject] = []
    for event in events:
        status = _status_after(event)
        if status is None or (entries and entries[-1]["Status"] == status):
            continue
        if entries:
            entries[-1]["EndTime"] = render_time(event.at)
        entries.append(_history_entry(status, event))
    if entries and job.is_ended:
        entries[-1]["EndTime"] = entries[-1]["StartTime"]
    return entries


def _status_after(event: Event) -> str | None:
    kind = Event.Kind(event.kind)
    if kind is Event.Kind.ENDED:
        return str(event.params.get("state", State.STOPPED)).capitalize()
    return statuses.HISTORY.get(kind)


def _history_entry(status: str, event: Event) -> JsonObject:
    code = str(event.params.get("reason", ""))
    known = code in set(ReasonCode)
    message = statuses.message_of(Reason(ReasonCode(code), event.params)) if known else ""
    return {
        "Status": status,
        "StartTime": render_time(event.at),
        "EndTime": "",
        "ReasonCode": statuses.reason_code(code) if known else "",
        "ReasonMessage": message,
    }
