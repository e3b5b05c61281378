"""Jobs on real GPUs: each has its own, and no other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from jobs.backends.base import Handle, Observation
from jobs.node.sandbox import gpu_devices
from jobs.spec import Resources
from jobs.states import State
from tests import gpu
from tests.jobs.backends.benches import LocalBench, log_of, role, wait_until_over
from tests.required import skip_without
from tests.waiting import wait_for

pytestmark = pytest.mark.skipif(bool(gpu.missing()), reason=gpu.missing() or "there is a GPU")

IMAGE: Final = "docker.io/pytorch/pytorch:latest"
ONE_GPU: Final = Resources(cpu_milli=2000, memory_mib=8192, gpus=1)
COUNT: Final = "import torch; print(torch.cuda.device_count(), torch.ones(1, device='cuda').item())"
BUSY: Final = "import torch; x = torch.ones(4096, 4096, device='cuda')\nwhile True: y = x @ x"
ALL_REDUCE: Final = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group(os.environ["SPOKEN"])
model = DistributedDataParallel(torch.nn.Linear(2, 1).cuda())
model(torch.ones(1, 2, device="cuda")).sum().backward()
total = torch.ones(1, device="cuda" if os.environ["SPOKEN"] == "nccl" else "cpu")
dist.all_reduce(total)
print("sum", total.item())
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[LocalBench]:
    made = LocalBench(tmp_path)
    yield made
    made.close()


def python(code: str) -> str:
    """A command of the tests' own interpreter, which has to have PyTorch."""
    pytest.importorskip("torch", reason="there is no PyTorch for the tests with a GPU")
    return f"{sys.executable} -c '{code.replace(chr(39), chr(34))}'"


def done(bench: LocalBench, handle: Handle) -> str:
    """The log of a job that succeeded."""
    seen = wait_until_over(bench.backend, handle, timeout=300)
    assert seen.state is State.SUCCEEDED, log_of(bench.backend, handle)
    return log_of(bench.backend, handle)


def test_job_sees_exactly_its_gpu_in_torch(bench: LocalBench) -> None:
    handle = bench.backend.submit(bench.submission(role(python(COUNT), resources=ONE_GPU)))
    assert done(bench, handle).split() == ["1", "1.0"]


def test_imaged_job_sees_exactly_its_gpu_in_torch(bench: LocalBench) -> None:
    skip_without("podman", "podman")
    command = f"python -c '{COUNT.replace(chr(39), chr(34))}'"
    handle = bench.backend.submit(bench.submission(role(command, image=IMAGE, resources=ONE_GPU)))
    assert done(bench, handle).split() == ["1", "1.0"]


def test_job_has_device_nodes_of_its_gpu_alone(bench: LocalBench) -> None:
    look = "ls -d /dev/nvidia[0-9]* 2>/dev/null; true"
    handle = bench.backend.submit(bench.submission(role(look, resources=ONE_GPU)))
    (own,) = done(bench, handle).split()
    assert own in gpu_devices.nodes_of((0,))
    bare = bench.backend.submit(bench.submission(role("ls /dev")))
    assert "nvidia" not in done(bench, bare)


def test_busy_job_has_gpu_use_by_nvml(bench: LocalBench) -> None:
    handle = bench.backend.submit(bench.submission(role(python(BUSY), resources=ONE_GPU)))

    def is_busy() -> bool:
        uses = bench.backend.measure([handle])[handle]
        return any(percent > 50 for use in uses for percent in use.gpu_percents or ())

    wait_for(is_busy, 120, 1)
    bench.backend.stop(handle, grace_s=0, signal="KILL")
    assert isinstance(wait_until_over(bench.backend, handle), Observation)


def test_torch_ddp_sums_over_two_processes(bench: LocalBench) -> None:
    has_two = len(bench.config.total().gpus) >= 2
    processes = f"{python(ALL_REDUCE)} & RANK=1 {python(ALL_REDUCE)}; wait %1"
    if has_two:
        one = role(python(ALL_REDUCE), replicas=2, resources=ONE_GPU, env={"SPOKEN": "nccl"})
    else:  # one GPU for both processes, which NCCL refuses
        env = {"SPOKEN": "gloo"}
        one = role(f"export WORLD_SIZE=2; RANK=0 {processes}", resources=ONE_GPU, env=env)
    handle = bench.backend.submit(bench.submission(one))
    assert "sum 2.0" in done(bench, handle)
