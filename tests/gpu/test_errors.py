"""What CUDA and NCCL themselves say when a job goes wrong, as the catalogue of errors reads it."""

from __future__ import annotations

import pytest

from jobs.fault_tolerance.error_catalogue import LINES, Origin, find_error
from jobs.states import State
from tests.gpu.programs import ONE_GPU, PATH, log_of_ended, python
from tests.jobs.backends.benches import LocalBench, role

TOO_LARGE = "import torch; torch.empty(1 << 42, device='cuda')"
OUT_OF_RANGE = """
import torch
table = torch.ones(4, device="cuda")
print(table[torch.tensor([9], device="cuda")].sum().item())
"""
SAME_GPU_TWICE = """
import os, torch, torch.distributed as dist
dist.init_process_group("nccl")
dist.all_reduce(torch.ones(1, device="cuda"))
"""


@pytest.mark.parametrize(
    ("command", "code", "origin"),
    [
        (python(TOO_LARGE), "gpu_memory", Origin.OWN),
        (python(OUT_OF_RANGE), "device_assert", Origin.OWN),
        (
            f"export WORLD_SIZE=2; RANK=1 {python(SAME_GPU_TWICE)} & RANK=0 {python(SAME_GPU_TWICE)}",
            "gpu_setup",
            Origin.OWN,
        ),
    ],
    ids=["memory", "assertion", "nccl"],
)
def test_error_of_the_driver_is_told_by_its_kind(
    bench: LocalBench, command: str, code: str, origin: Origin
) -> None:
    handle = bench.backend.submit(bench.submission(role(command, resources=ONE_GPU, env=PATH)))
    lines = log_of_ended(bench, handle, State.FAILED).splitlines()
    found = find_error(lines[-LINES:])
    assert found is not None, lines
    assert (found.code, found.origin) == (code, origin), lines
