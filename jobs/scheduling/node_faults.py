"""Faults of the nodes on which an attempt failed: of GPUs, by the kernel's log, and nodes taken away."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

import structlog

from jobs.backends.base import ReplicaSeen, Unreachable
from jobs.backends.measures import KernelLog, KernelLogging
from jobs.clusters import NoSuchBackend, backend_for
from jobs.fault_tolerance.decisions import Fault
from jobs.fault_tolerance.error_catalogue import Origin
from jobs.fault_tolerance.kernel_log import GpuFault, normalize_bus, parse_line
from jobs.models import Attempt
from quotas.models import Node

log = structlog.get_logger(__name__)

DRAINED: Final = "node_drained"
"""The code of a fault of a node that takes no jobs any more."""

EARLIER_S: Final = 5.0
"""Clocks of the kernel and of the console may differ by so much."""


def find_gpu_fault(attempt: Attempt, failed: Sequence[ReplicaSeen]) -> Fault | None:
    """Return the fault of a GPU that a failed replica had, by the kernel's log; None where none is known."""
    if not attempt.job.gpus:
        return None
    try:
        backend = backend_for(attempt.job.cluster)
    except (NoSuchBackend, Unreachable):
        return None
    if not isinstance(backend, KernelLogging):
        return None
    logs: dict[str, KernelLog] = {}
    for replica in failed:
        if replica.gpus:
            if replica.node not in logs:
                logs[replica.node] = backend.read_kernel_log(replica.node)
            found = find_in_kernel_log(logs[replica.node], replica, time.time() - time.monotonic())
            if found is not None:
                return found
    return None


def find_in_kernel_log(kernel_log: KernelLog, replica: ReplicaSeen, machine_started_s: float) -> Fault | None:
    """Return the platform's fault of one of the replica's GPUs since the replica started."""
    buses = {
        normalize_bus(kernel_log.buses[index]) for index in replica.gpus or () if index in kernel_log.buses
    }
    for each in _parse(kernel_log):
        is_new = each.at_s is None or replica.started_at is None
        is_new = is_new or machine_started_s + (each.at_s or 0) >= (replica.started_at or 0) - EARLIER_S
        if each.pci in buses and is_new and each.origin is Origin.PLATFORM:
            return Fault(each.code, each.origin, each.line, replica.role, replica.index, replica.node)
    return None


def _parse(kernel_log: KernelLog) -> Iterator[GpuFault]:
    for line in kernel_log.lines:
        if (found := parse_line(line)) is not None:
            yield found


def find_drained(attempt: Attempt, failed: Sequence[ReplicaSeen]) -> Fault | None:
    """Return the fault of a replica that failed on a node which the engine or an admin takes no jobs on."""
    names = {replica.node for replica in failed if replica.node}
    if not names:
        return None
    rows = Node.objects.filter(cluster=attempt.job.cluster_id, name__in=names)
    why = {node.name: node.why_not for node in rows if not node.takes_jobs}
    for replica in failed:
        if replica.node in why:
            line = f"{replica.node}: {why[replica.node]}"
            return Fault(DRAINED, Origin.PLATFORM, line, replica.role, replica.index, replica.node)
    return None
