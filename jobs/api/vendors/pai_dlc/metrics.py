"""Measured use of a job's pods, and its health checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from django.utils import timezone

from jobs.access import sessions
from jobs.api.vendors.operations import (
    Call,
    InvalidParameters,
    JsonObject,
    Kind,
    Location,
    Operation,
    Parameter,
    Support,
    WrongValue,
)
from jobs.api.vendors.pai_dlc.identifiers import find_job, job_id, pod_id
from jobs.models import ReplicaUsage
from quotas.access import Verb

Point: TypeAlias = tuple[float, float]
"""A time in seconds since the epoch, and a value."""

DEFAULT_STEP: Final = "5m"
DEFAULT_RANGE_S: Final = 3600

_STEP: Final = re.compile(r"(?P<count>[1-9][0-9]{0,5})(?P<unit>[smhd]?)", re.ASCII)
_UNIT_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def _gpu_use(use: ReplicaUsage) -> list[Point]:
    return [(at, gpu) for at, gpu, _cpu in use.points if gpu is not None]


def _cpu_use(use: ReplicaUsage) -> list[Point]:
    return [(at, cpu) for at, _gpu, cpu in use.points if cpu is not None]


def _memory_use(use: ReplicaUsage) -> list[Point]:
    return [(use.at.timestamp(), use.memory_mib)]


def _no_points(_use: ReplicaUsage) -> list[Point]:
    return []


_SERIES: Final[Mapping[str, Callable[[ReplicaUsage], list[Point]]]] = {
    "GpuCoreUsage": _gpu_use,
    "CpuCoreUsage": _cpu_use,
    "MemoryUsage": _memory_use,
    "GpuMemoryUsage": _no_points,
    "NetworkInputRate": _no_points,
    "NetworkOutputRate": _no_points,
    "DiskReadRate": _no_points,
    "DiskWriteRate": _no_points,
}
"""The stored measurements of a replica, by the vendor's metric types."""


def get_job_metrics(call: Call) -> JsonObject:
    """Answer what was measured of the pods of the current run."""
    job = find_job(call, call.values["JobId"], Verb.READ)
    begin, end = _range_of(call.values["StartTime"], call.values["EndTime"])
    step = _seconds_of(call.values["TimeStep"])
    read_series = _SERIES[call.values["MetricType"]]
    pods = []
    for replica in sessions.current_replicas(job).select_related("use").order_by("ordinal"):
        use: ReplicaUsage | None = getattr(replica, "use", None)
        points = read_series(use) if use is not None else []
        points = [point for point in points if begin <= point[0] <= end]
        pods.append({"PodId": pod_id(job, replica), "Metrics": _render(_thin(points, step))})
    return {"JobId": job_id(job), "PodMetrics": pods}


def _range_of(start: datetime | None, end: datetime | None) -> tuple[float, float]:
    """Return begin and end in seconds since the epoch; the hour until the end where there is no start."""
    until = (end or timezone.now()).timestamp()
    return (start.timestamp() if start else until - DEFAULT_RANGE_S), until


def _seconds_of(text: str) -> int:
    """Return the seconds of a step as `5m`.  Raises InvalidParameters."""
    found = _STEP.fullmatch(text)
    if found is None:
        raise InvalidParameters([WrongValue("TimeStep", "time span as 5m", value=text)])
    return int(found["count"]) * _UNIT_SECONDS[found["unit"]]


def _thin(points: Iterable[Point], step: int) -> list[Point]:
    """Return the last point of each step."""
    return list({int(at) // step: (at, value) for at, value in sorted(points)}.values())


def _render(points: Iterable[Point]) -> list[JsonObject]:
    return [{"Time": int(1000 * at), "Value": float(value)} for at, value in points]


def list_sanity_check_results(call: Call) -> JsonObject:
    """Answer that the job had no health checks."""
    find_job(call, call.values["JobId"], Verb.READ)
    return {"SanityCheckResults": [], "TotalCount": 0, "RequestID": call.request_id}


def get_sanity_check_result(call: Call) -> JsonObject:
    """Answer that the health check has no results."""
    job = find_job(call, call.values["JobId"], Verb.READ)
    return {"JobId": job_id(job), "SanityCheckResult": [], "RequestID": call.request_id}


_ID: Final = Parameter("JobId", location=Location.PATH, required=True)
_TOKEN: Final = Parameter("Token", support=Support.IGNORED, note="There are no sharing tokens.")
_CHECKS: Final = "The console runs no health checks: the results are empty."

OPERATIONS: Final = (
    Operation(
        "GetJobMetrics",
        "GET",
        "api/v1/jobs/<str:JobId>/metrics",
        get_job_metrics,
        parameters=(
            _ID,
            Parameter("MetricType", required=True, choices=tuple(_SERIES)),
            Parameter("StartTime", Kind.TIME, note="Measurements of the last hour are stored."),
            Parameter("EndTime", Kind.TIME),
            Parameter("TimeStep", default=DEFAULT_STEP, note="The last measurement of each is answered."),
            _TOKEN,
        ),
        support=Support.PARTIAL,
        note=(
            "GpuCoreUsage is the percentage of the busiest GPU, CpuCoreUsage that of one core, MemoryUsage "
            "the last measurement in MiB. The other types are not measured: their series are empty."
        ),
    ),
    Operation(
        "ListJobSanityCheckResults",
        "GET",
        "api/v1/jobs/<str:JobId>/sanitycheckresults",
        list_sanity_check_results,
        parameters=(_ID, Parameter("Order", choices=("asc", "desc"), default="asc")),
        support=Support.PARTIAL,
        note=_CHECKS,
    ),
    Operation(
        "GetJobSanityCheckResult",
        "GET",
        "api/v1/jobs/<str:JobId>/sanitycheckresult",
        get_sanity_check_result,
        parameters=(
            _ID,
            Parameter("SanityCheckNumber", Kind.INTEGER, required=True, least=0),
            Parameter(
                "SanityCheckPhase",
                choices=(
                    "CheckInit",
                    "DeviceCheck",
                    "SingleNodeCommCheck",
                    "TwoNodeCommCheck",
                    "AllNodeCommCheck",
                ),
            ),
            _TOKEN,
        ),
        support=Support.PARTIAL,
        note=_CHECKS,
    ),
)
