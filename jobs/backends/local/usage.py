"""Usage of an attempt's replicas: CPU time and memory by /proc, GPUs by NVML."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from jobs.backends.local import gpus
from jobs.backends.measures import Use
from jobs.node import processes
from jobs.node.sandbox import running_replica
from jobs.node.sandbox.running_replica import ReplicaUnavailable
from jobs.node.supervisor.plan import Plan, PlannedReplica

PATIENCE_S: Final = 20.0
"""A look at all attempts of the machine ends so soon; what it did not come to is unknown."""


def uses(attempts: Sequence[Path], reader: gpus.GpuReader) -> Iterator[tuple[Path, list[Use]]]:
    """Each attempt and what its running replicas use; those that can't be looked at are left out."""
    until = time.monotonic() + PATIENCE_S
    for path in attempts:
        plan = Plan.read(path)
        if plan is not None and time.monotonic() <= until:
            yield path, list(_uses(path, plan, reader))


def _uses(path: Path, plan: Plan, reader: gpus.GpuReader) -> Iterator[Use]:
    for place in plan.replicas():
        try:
            pids = running_replica.find_running(path, place.role.name, place.index).pids()
        except (ReplicaUnavailable, OSError):  # it has ended meanwhile, or does not run yet
            continue
        yield Use(
            role=place.role.name,
            index=place.index,
            cpu_s=sum(map(processes.cpu_seconds, pids)),
            memory_mib=sum(map(processes.resident_bytes, pids)) >> 20,
            gpu_percents=_busy(plan, place, pids, reader),
        )


def _busy(
    plan: Plan, place: PlannedReplica, pids: Sequence[int], reader: gpus.GpuReader
) -> tuple[int, ...] | None:
    """How busy each of its GPUs is; None for those that only settings know of."""
    if not place.slot.gpus:
        return ()
    if not plan.house.gpu_devices:
        return None
    found = [reader.busy(index, frozenset(pids)) for index in place.slot.gpus]
    return None if None in found else tuple(each for each in found if each is not None)
