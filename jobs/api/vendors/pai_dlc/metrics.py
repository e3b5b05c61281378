"""Measured use of a job's pods, and its health checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
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
from jobs.models import Job, ReplicaUsage, SanityCheck
from jobs.models.usage import Sample
from quotas.access import Verb

Point: TypeAlias = tuple[float, float]
"""A time in seconds since the epoch, and a value."""

DEFAULT_STEP: Final = "5m"
DEFAULT_RANGE_S: Final = 3600

_STEP: Final = re.compile(r"(?P<count>[1-9][0-9]{0,5})(?P<unit>[smhd]?)", re.ASCII)
_UNIT_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


_SERIES: Final[Mapping[str, Callable[[Sample], float | None]]] = {
    "GpuCoreUsage": lambda sample: sample.gpu,
    "CpuCoreUsage": lambda sample: sample.cpu,
    "MemoryUsage": lambda sample: sample.memory_mib,
    "GpuMemoryUsage": lambda _sample: None,
    "NetworkInputRate": lambda sample: sample.received,
    "NetworkOutputRate": lambda sample: sample.sent,
    "DiskReadRate": lambda sample: sample.disk_read,
    "DiskWriteRate": lambda sample: sample.disk_written,
}
"""The stored measurements of a replica, by the vendor's metric types."""


def get_job_metrics(call: Call) -> JsonObject:
    """Answer what was measured of the pods of the current run."""
    job = find_job(call, call.values["JobId"], Verb.READ)
    begin, end = _range_of(call.values["StartTime"], call.values["EndTime"])
    step = _seconds_of(call.values["TimeStep"])
    value = _SERIES[call.values["MetricType"]]
    pods = []
    for replica in sessions.current_replicas(job).select_related("use").order_by("ordinal"):
        use: ReplicaUsage | None = getattr(replica, "use", None)
        samples = use.samples if use is not None else []
        known = [(sample.at, found) for sample in samples if (found := value(sample)) is not None]
        points = [point for point in known if begin <= point[0] <= end]
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
    """Answer every health check of the job, each with its phases."""
    job = find_job(call, call.values["JobId"], Verb.READ)
    found = list(_list_checks(job))
    if call.values["Order"] == "desc":
        found.reverse()
    return {"SanityCheckResults": found, "TotalCount": len(found), "RequestID": call.request_id}


def get_sanity_check_result(call: Call) -> JsonObject:
    """Answer the phases of one health check, or one of them."""
    job = find_job(call, call.values["JobId"], Verb.READ)
    number, phase = call.values["SanityCheckNumber"], call.values["SanityCheckPhase"]
    found = [row for rows in _list_checks(job) for row in rows if row["CheckNumber"] == number]
    rows = [row for row in found if phase in ("", None, row["Phase"])]
    return {"JobId": job_id(job), "SanityCheckResult": rows, "RequestID": call.request_id}


def _list_checks(job: Job) -> Iterator[list[JsonObject]]:
    """Yield the phases of each check of the job's attempts and runs; they are numbered from 1."""
    rows = SanityCheck.objects.filter(attempt__job=job).order_by("attempt__number", "run")
    for number, check in enumerate(rows, start=1):
        yield [
            {
                "CheckNumber": number,
                "Phase": phase["phase"],
                "Status": phase["status"],
                "Message": phase["message"],
                "StartedAt": _render_moment(phase["started_at"]),
                "FinishedAt": _render_moment(phase["finished_at"]),
            }
            for phase in check.phases
        ]


def _render_moment(seconds: float | None) -> str:
    """Return a time as the vendor writes those of checks; "" for none."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds") if seconds else ""


_ID: Final = Parameter("JobId", location=Location.PATH, required=True)
_TOKEN: Final = Parameter("Token", support=Support.IGNORED, note="There are no sharing tokens.")
_CHECKS: Final = "The statuses are Running, Succeeded, Failed and Skipped; the vendor publishes none."

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
            "the last measurement in MiB; disk and network are in MiB a second. GpuMemoryUsage is not "
            "measured: its series is empty."
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
