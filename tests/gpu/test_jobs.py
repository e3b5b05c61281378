"""Jobs on real GPUs: each has its own, and no other."""

from __future__ import annotations

from typing import Final

from jobs.backends.base import Observation
from jobs.node.sandbox import gpu_devices
from tests.gpu.programs import ONE_GPU, PATH, log_of_ended, python
from tests.jobs.backends.benches import LocalBench, role, wait_until_over
from tests.required import skip_without
from tests.waiting import wait_for

IMAGE: Final = "docker.io/pytorch/pytorch:latest"
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


def test_job_sees_exactly_its_gpu_in_torch(bench: LocalBench) -> None:
    handle = bench.backend.submit(bench.submission(role(python(COUNT), resources=ONE_GPU, env=PATH)))
    assert log_of_ended(bench, handle).split() == ["1", "1.0"]


def test_imaged_job_sees_exactly_its_gpu_in_torch(bench: LocalBench) -> None:
    skip_without("podman", "podman")
    command = f"python -c '{COUNT.replace(chr(39), chr(34))}'"
    handle = bench.backend.submit(bench.submission(role(command, image=IMAGE, resources=ONE_GPU)))
    assert log_of_ended(bench, handle).split() == ["1", "1.0"]


def test_job_has_device_nodes_of_its_gpu_alone(bench: LocalBench) -> None:
    look = "ls -d /dev/nvidia[0-9]* 2>/dev/null; true"
    handle = bench.backend.submit(bench.submission(role(look, resources=ONE_GPU)))
    (own,) = log_of_ended(bench, handle).split()
    assert own in gpu_devices.nodes_of((0,))
    bare = bench.backend.submit(bench.submission(role("ls /dev")))
    assert "nvidia" not in log_of_ended(bench, bare)


def test_busy_job_has_gpu_use_by_nvml(bench: LocalBench) -> None:
    handle = bench.backend.submit(bench.submission(role(python(BUSY), resources=ONE_GPU, env=PATH)))

    def is_busy() -> bool:
        uses = bench.backend.measure([handle])[handle]
        return any(percent > 50 for use in uses for percent in use.gpu_percents or ())

    wait_for(is_busy, 120, 1)
    bench.backend.stop(handle, grace_s=0, signal="KILL")
    assert isinstance(wait_until_over(bench.backend, handle), Observation)


def test_torch_ddp_sums_over_two_processes(bench: LocalBench) -> None:
    has_two = len(bench.config.total().gpus) >= 2
    processes = f"{python(ALL_REDUCE)} & RANK=1 {python(ALL_REDUCE)}; wait $!"
    if has_two:
        one = role(python(ALL_REDUCE), replicas=2, resources=ONE_GPU, env={**PATH, "SPOKEN": "nccl"})
    else:  # one GPU for both processes, which NCCL refuses
        env = {**PATH, "SPOKEN": "gloo"}
        one = role(f"export WORLD_SIZE=2; RANK=0 {processes}", resources=ONE_GPU, env=env)
    handle = bench.backend.submit(bench.submission(one))
    assert "sum 2.0" in log_of_ended(bench, handle)
