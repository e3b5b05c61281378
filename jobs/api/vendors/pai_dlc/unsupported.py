"""Operations of PAI-DLC that have no meaning here: they are named, and refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from jobs.api.vendors.operations import Kind, Location, Operation, Parameter, Support

SINCE: Final = "1.11.6"

_TAGS: Final = "the tags of a job are those of its CreateJob request and can't be changed."
_SIGNALS: Final = "the console sends no signals to running pods; StopJob ends a job."
_METRICS: Final = "there is no CloudMonitor; GetJobMetrics answers what is measured."
_RAY: Final = "the console runs no Ray history servers; the logs of Ray jobs are stored with the jobs."


def _refuse(
    name: str,
    method: str,
    path: str,
    note: str,
    query: Iterable[str] = (),
    body: Iterable[str] = (),
) -> Operation:
    """Return the row of an operation that is refused."""
    in_path = [part.split(":")[1].rstrip(">") for part in path.split("/") if part.startswith("<")]
    parameters = (
        *(Parameter(each, location=Location.PATH, required=True) for each in in_path),
        *(Parameter(each, Kind.ANY) for each in query),
        *(Parameter(each, Kind.ANY, Location.BODY) for each in body),
    )
    scope = "read" if method == "GET" else "submit"
    return Operation(
        name,
        method,
        f"api/v1/{path}",
        scope=scope,
        parameters=parameters,
        support=Support.REFUSED,
        note=note,
        since=SINCE,
    )


_PAGES: Final = ("Order", "PageNumber", "PageSize", "SortBy")
_SERVERS: Final = "rayhistoryservers"
_SERVER: Final = f"{_SERVERS}/<str:RayHistoryServerId>"
_JOB_SIGNALS: Final = "jobs/<str:JobId>/signals"

OPERATIONS: Final = (
    _refuse("TagResources", "POST", "tags", _TAGS, body=("RegionId", "ResourceId", "ResourceType", "Tag")),
    _refuse("UntagResources", "DELETE", "tags", _TAGS, ("All", "ResourceId", "ResourceType", "TagKey")),
    _refuse("CreateSignal", "POST", _JOB_SIGNALS, _SIGNALS, body=("Signal", "Target")),
    _refuse("ListSignals", "GET", _JOB_SIGNALS, _SIGNALS, (*_PAGES, "Status", "Token")),
    _refuse("GetSignal", "GET", f"{_JOB_SIGNALS}/<str:SignalId>", _SIGNALS, ("Token",)),
    _refuse(
        "GetMetrics",
        "GET",
        "cms/metrics",
        _METRICS,
        (
            *("Dimensions", "EndTime", "JobId", "Length", "MetricName"),
            *("Namespace", "NextToken", "Period", "StartTime", "Token"),
        ),
    ),
    _refuse(
        "CreateRayHistoryServer",
        "POST",
        _SERVERS,
        _RAY,
        body=(
            *("Accessibility", "DisplayName", "EcsSpec", "MaxRuntimeMinutes"),
            *("ResourceId", "StoragePath", "WorkspaceId"),
        ),
    ),
    _refuse(
        "ListRayHistoryServers",
        "GET",
        _SERVERS,
        _RAY,
        (
            *("DisplayName", "EndTime", "IdPrefix", "ModifiedAfter", "PaymentType", "ResourceId", "ShowOwn"),
            *("StartTime", "Status", "StoragePath", "UserIdForFilter", "Username", "WorkspaceId", *_PAGES),
        ),
    ),
    _refuse("GetRayHistoryServer", "GET", _SERVER, _RAY),
    _refuse("DeleteRayHistoryServer", "DELETE", _SERVER, _RAY),
    _refuse("StartRayHistoryServer", "POST", f"{_SERVER}/start", _RAY),
    _refuse("StopRayHistoryServer", "POST", f"{_SERVER}/stop", _RAY),
)
