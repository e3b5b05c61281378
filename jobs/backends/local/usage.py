"""Usage of an attempt's replicas: CPU time, memory, disk and network by /proc, GPUs by NVML.

Bytes of the disk are those of `/proc/PID/io`, which the kernel charges to whoever read or dirtied the page; a
control group of version 1 does not know who wrote what is written back later.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from jobs.backends.local import gpus
from jobs.backends.measures import Transferred, Use
from jobs.node import processes
from jobs.node.network import interfaces
from jobs.node.process_trees import ProcessTable
from jobs.node.sandbox import running_replica
from jobs.node.sandbox.running_replica import RunningReplica
from jobs.node.supervisor.plan import Plan, PlannedReplica

PATIENCE_S: Final = 20.0
"""A look at all attempts of the machine ends so soon; what it did not come to is unknown."""


def uses(attempts: Sequence[Path], reader: gpus.GpuReader) -> Iterator[tuple[Path, list[Use]]]:
    """Each attempt and what its running replicas use; those that can't be looked at are left out."""
    until = time.monotonic() + PATIENCE_S
    table = ProcessTable()
    for path in attempts:
        plan = Plan.read(path)
        if plan is None or time.monotonic() > until:
            continue
        with suppress(OSError):  # the attempt has been removed meanwhile
            replicas = running_replica.list_running(path, plan, table)
            yield path, [_use(each, table, reader) for each in replicas]


def _use(replica: RunningReplica, table: ProcessTable, reader: gpus.GpuReader) -> Use:
    plan, place = replica.launch.plan, replica.launch.place
    pids = replica.pids(table)
    disk = [found for pid in pids if (found := processes.disk_bytes(pid)) is not None]
    network = interfaces.count_bytes(replica.first)
    return Use(
        role=place.role.name,
        index=place.index,
        cpu_s=sum(map(processes.cpu_seconds, pids)),
        memory_mib=sum(map(processes.resident_bytes, pids)) >> 20,
        gpu_percents=_busy(plan, place, pids, reader),
        transferred=Transferred(
            disk_read=sum(read for read, _written in disk) if disk else None,
            disk_written=sum(written for _read, written in disk) if disk else None,
            received=network and network[0],
            sent=network and network[1],
        ),
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
