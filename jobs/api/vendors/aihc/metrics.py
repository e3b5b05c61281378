"""Metrics of pods, as far as the console measures them: GPU and CPU in percent, and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.utils import timezone

from jobs.api.vendors.aihc import names
from jobs.api.vendors.operations import Call, JsonObject
from jobs.models import Job, ReplicaUsage
from jobs.models.usage import Sample
from quotas.access import Verb

TYPES: Final = (
    *("GpuUsage", "GpuMemoryUsage", "GpuTemperature", "GpuPowerUsage", "GpuPipeTensorUsage"),
    *("CpuUsage", "CpuTime", "MemoryUsage", "MemoryAllocation", "DiskReadRate", "DiskWriteRate"),
    *("RDMASendDataRate", "RDMARecvDataRate", "RDMASendPacketsRate", "RDMARecvPacketsRate"),
    *("RDMASendErrorRate", "RDMARecvErrorRate", "RDMAHealth", "PCIESendDataRate", "PCIERecvDataRate"),
    *("NVLinkSendDataRate", "NVLinkRecvDataRate"),
)
"""AIHC's metric types."""

_SERIES: Final[Mapping[str, Callable[[Sample], float | None]]] = {
    "GpuUsage": lambda sample: sample.gpu,
    "CpuUsage": lambda sample: sample.cpu,
    "DiskReadRate": lambda sample: None if sample.disk_read is None else sample.disk_read * 2**20,
    "DiskWriteRate": lambda sample: None if sample.disk_written is None else sample.disk_written * 2**20,
    "MemoryAllocation": lambda sample: None if sample.memory_mib is None else sample.memory_mib * 2**20,
}
MEASURED: Final = tuple(_SERIES)
MOST_POINTS: Final = 1000
MOST_PODS: Final = 100
_PERIOD: Final = timedelta(hours=1)
"""What is answered without a start."""


def describe_job_metrics(call: Call) -> JsonObject:
    """Return the measurements of each pod of a job, as version 2 does."""
    return _list(call, "metrics")


def describe_job_metrics_v1(call: Call) -> JsonObject:
    """Return the measurements of each pod of a job, as version 1 does."""
    return _list(call, "podMetrics")


def _list(call: Call, key: str) -> JsonObject:
    job = names.find_job(call, Verb.READ)
    end = names.read_time("endTime", call.values["endTime"]) or timezone.now()
    begin = names.read_time("startTime", call.values["startTime"]) or end - _PERIOD
    moments = (begin.timestamp(), end.timestamp(), float(call.values["timeStep"]))
    kind = call.values["metricType"]
    uses = _list_uses(job) if kind in MEASURED else []
    pods = [
        {
            "podName": names.pod_name(job, use.replica.role, use.replica.index),
            "metrics": [
                {"time": int(at), "value": f"{value:g}"} for at, value in _select(use, kind, moments)
            ],
        }
        for use in uses
    ]
    return {"jobId": names.job_id(job), key: pods}


def _list_uses(job: Job) -> list[ReplicaUsage]:
    rows = ReplicaUsage.objects.filter(
        replica__attempt__job=job, replica__attempt__number=job.attempt_number, replica__run=job.run_number
    )
    return list(rows.select_related("replica").order_by("replica__ordinal")[:MOST_PODS])


def _select(use: ReplicaUsage, kind: str, moments: tuple[float, float, float]) -> list[tuple[float, float]]:
    begin, end, step = moments
    known = [(each.at, value) for each in use.samples if (value := _SERIES[kind](each)) is not None]
    last = use.at.timestamp()
    return list(_sample(known, max(begin, known[0][0]), min(end, last), step)) if known else []


def _sample(
    known: Sequence[tuple[float, float]], begin: float, end: float, step: float
) -> Iterator[tuple[float, float]]:
    """Yield a value each `step` seconds; between measurements the last one holds, as they note changes."""
    at, position = begin, 0
    for _number in range(MOST_POINTS):
        if at > end:
            return
        while position + 1 < len(known) and known[position + 1][0] <= at:
            position += 1
        yield at, known[position][1]
        at += step
