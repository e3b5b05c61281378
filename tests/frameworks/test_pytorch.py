"""PyTorch jobs with Debian's PyTorch: `torchrun` without an option spans the replicas."""

from __future__ import annotations

from typing import Final

from jobs.spec import CompletionPolicy, Framework, Resources
from jobs.states import ReplicaState, State
from tests.jobs.backends.benches import Bench, log_of, replica, role, wait_until_over
from tests.required import skip_without

TRAIN: Final = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print(dist.get_rank(), dist.get_world_size(), total.item())
dist.destroy_process_group()
"""
OF_DEBIAN: Final = {"PET_TEE": "1", "PET_REDIRECTS": "2"}
"""Without these Debian's torchrun fails with Python 3.11: its enumerations have no zero there."""

SIZE: Final = Resources(cpu_milli=1000, memory_mib=2048)


def test_torchrun_without_options_spans_replicas(bench: Bench) -> None:
    skip_without("torchrun", "python3-torch")
    (bench.judge / "train.py").write_text(TRAIN)
    two = role(f"torchrun {bench.judge}/train.py", replicas=2, resources=SIZE)
    handle = bench.backend.submit(bench.submission(two, framework=Framework.PYTORCH, env=OF_DEBIAN))
    seen = wait_until_over(bench.backend, handle, 120)
    logs = [log_of(bench.backend, handle, index=index) for index in range(2)]
    assert seen.state is State.SUCCEEDED, logs
    assert [log.splitlines()[-1].rpartition(":")[2] for log in logs] == ["0 2 3.0", "1 2 3.0"]


def test_elastic_job_goes_on_with_minimum(bench: Bench) -> None:
    skip_without("torchrun", "python3-torch")
    (bench.judge / "train.py").write_text(TRAIN)
    command = f"[ $RANK = 0 ] || exit 7; torchrun {bench.judge}/train.py"
    elastic = CompletionPolicy(min_failed=2)
    two = role(command, replicas=2, resources=SIZE, completion=elastic)
    env = {**OF_DEBIAN, "PET_RDZV_CONF": "last_call_timeout=1"}
    handle = bench.backend.submit(bench.submission(two, framework=Framework.ELASTIC_BATCH, env=env))
    seen = wait_until_over(bench.backend, handle, 120)
    assert seen.state is State.SUCCEEDED, log_of(bench.backend, handle)
    assert replica(seen, index=1).state is ReplicaState.FAILED
    assert "0 1 1.0" in log_of(bench.backend, handle)
