"""GPU faults in a kernel's log belong to the replica that had the GPU then."""

from __future__ import annotations

import pytest

from jobs.backends.base import ReplicaSeen
from jobs.backends.measures import KernelLog
from jobs.scheduling.node_faults import find_in_kernel_log
from jobs.states import ReplicaState

LOG = KernelLog(
    (
        "6,901,100500000,-;NVRM: Xid (PCI:0000:3b:00): 48, pid=1, Ch 00000008",
        "6,902,200500000,-;NVRM: Xid (PCI:0000:3b:00): 13, pid=1, Graphics SM Warp Exception",
        "6,903,300500000,-;NVRM: Xid (PCI:0000:af:00): 79, GPU has fallen off the bus.",
    ),
    {0: "00000000:3B:00.0", 1: "00000000:AF:00.0"},
)


@pytest.mark.parametrize(
    ("gpus", "started_at", "code"),
    [
        ((0,), 1050.0, "gpu_ecc"),
        ((0,), 1150.0, None),
        ((1,), 1150.0, "gpu_lost"),
        ((0, 1), 1150.0, "gpu_lost"),
        ((2,), 1000.0, None),
        (None, 1000.0, None),
    ],
)
def test_gpu_fault_is_of_a_gpu_of_the_replica_since_it_started(
    gpus: tuple[int, ...] | None, started_at: float, code: str | None
) -> None:
    replica = ReplicaSeen("worker", 2, ReplicaState.FAILED, gpus=gpus, started_at=started_at)
    found = find_in_kernel_log(LOG, replica, machine_started_s=1000.0)
    assert (found.code if found else None) == code
    assert found is None or (found.role, found.index) == ("worker", 2)
