"""PyTorch jobs with Debian's PyTorch: `torchrun` without an option spans the replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from jobs.backends.base import Observation, ReplicaRef, ReplicaSeen, RestartingReplicas
from jobs.logs import log_store
from jobs.models import Attempt, LogStream
from jobs.node.supervisor import restart_lines
from jobs.spec import Check, CompletionPolicy, FaultTolerance, Framework, Resources, RestartScope
from jobs.states import ReplicaState, State
from tests.jobs.backends.benches import (
    ENGINE_S,
    Bench,
    LocalBench,
    log_of,
    replica,
    role,
    wait_until_over,
)
from tests.jobs.scheduling.fault_site import WITHIN_S, FaultSite, decisions, is_over, pauses, site
from tests.required import skip_without
from tests.waiting import wait_for

__all__ = ["site"]

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
    handle = bench.backend.submit(
        bench.submission(two, framework=Framework.PYTORCH, env=OF_DEBIAN, sanity_check=Check(enabled=True))
    )
    seen = wait_until_over(bench.backend, handle, 120)
    logs = [log_of(bench.backend, handle, index=index) for index in range(2)]
    assert seen.state is State.SUCCEEDED, logs
    assert [log.splitlines()[-1].rpartition(":")[2] for log in logs] == ["0 2 3.0", "1 2 3.0"]
    for one, log in zip(seen.replicas, logs, strict=True):
        assert "Sanity check: AllNodeCommCheck: Succeeded: all-reduce by gloo" in log
        assert one.sanity is not None
        assert one.sanity["status"] == "Succeeded"


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


RESUMING: Final = """
import glob, os, signal, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, SAVED_EVERY, LOST_AT = 8, 2, 5
dist.init_process_group("gloo")
rank = dist.get_rank()
replica = int(os.environ.get("PET_NODE_RANK", rank))  # torchrun gives ranks in the order of a rendezvous


def save(step, model, optimizer):
    path = f"{os.environ['CHECKPOINT_DIR']}/step-{step}.pt"
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path + ".tmp")
    os.rename(path + ".tmp", path)


def train(resume_from, saves, is_lost):
    torch.manual_seed(7)
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    first = 0
    if resume_from:
        state = torch.load(resume_from)
        first = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for step in range(first, STEPS):
        if is_lost and replica == 1 and step == LOST_AT:
            if "HANGS" in os.environ:
                time.sleep(600)
            if "TORCHELASTIC_RUN_ID" in os.environ:
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        data = torch.randn(16, 4, generator=torch.Generator().manual_seed(100 * step + rank))
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
        if saves and rank == 0 and (step + 1) % SAVED_EVERY == 0:
            save(step + 1, model, optimizer)
    return first, torch.cat([each.detach().flatten() for each in model.parameters()])


resume_from = os.environ.get("RESUME_FROM")
if "TORCHELASTIC_RUN_ID" in os.environ:  # its processes start again within one attempt
    found = glob.glob(os.environ["CHECKPOINT_DIR"] + "/step-*.pt")
    resume_from = max(found, key=os.path.getmtime, default=None)
first, weights = train(resume_from, saves=True, is_lost=not resume_from)
_, expected = train(None, saves=False, is_lost=False)
print(first, torch.equal(weights, expected))
"""
"""Loses a rank at its first run, or has one that the other waits for in its backward pass; then compares its
weights with those of training that lost none.  Beside torchrun it takes its whole replica with it."""


def test_model_that_lost_a_rank_once_ends_with_weights_of_undisturbed_training(local: LocalBench) -> None:
    skip_without("torchrun", "python3-torch")
    (local.judge / "train.py").write_text(RESUMING)
    two = role(f"/usr/bin/python3 {local.judge}/train.py", replicas=2, resources=SIZE)
    first = local.submission(two, framework=Framework.PYTORCH, env={"OMP_NUM_THREADS": "1"})
    seen = wait_until_over(local.backend, local.backend.submit(first), 120)
    assert (seen.state, replica(seen, index=1).signal) == (State.FAILED, 9)
    handle = local.backend.submit(replace(first, key=f"{first.key[:-1]}2", attempt=2))
    seen = wait_until_over(local.backend, handle, 120)
    logs = [log_of(local.backend, handle, index=index) for index in range(2)]
    assert seen.resumed is not None, logs
    assert (seen.state, seen.resumed.name) == (State.SUCCEEDED, "step-4.pt"), logs
    assert [log.splitlines()[-1] for log in logs] == ["4 True", "4 True"]


def test_elastic_job_lets_a_restarted_replica_in_again(bench: Bench) -> None:
    skip_without("torchrun", "python3-torch")
    backend = bench.backend
    assert isinstance(backend, RestartingReplicas)
    (bench.judge / "train.py").write_text(RESUMING)
    two = role(f"torchrun {bench.judge}/train.py", replicas=2, resources=SIZE)
    alone = FaultTolerance(enabled=True, restart_scope=RestartScope.REPLICA)
    env = {**OF_DEBIAN, "OMP_NUM_THREADS": "1"}
    handle = backend.submit(
        bench.submission(two, framework=Framework.ELASTIC_BATCH, env=env, fault_tolerance=alone)
    )

    def failed() -> ReplicaSeen | None:
        seen = backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        return next((each for each in seen.replicas if each.failed_run), None)

    lost = wait_for(failed, 120, interval=ENGINE_S)
    assert (lost.index, lost.failed_run and lost.failed_run.run) == (1, 1)
    backend.order_restart(handle, ReplicaRef("worker", 1), 1, restarts=True)
    seen = wait_until_over(backend, handle, 120)
    logs = [log_of(backend, handle, index=index) for index in range(2)]
    assert seen.state is State.SUCCEEDED, logs
    told = [line.rpartition(":")[2] for log in logs for line in log.splitlines()]
    assert told.count("4 True") == len(logs), logs  # torchrun may say more of the end behind it
    assert not any(restart_lines.TEXT in log for log in logs[:1]), "the other replica went on"


@pytest.mark.django_db
def test_model_that_hung_in_a_collective_once_ends_with_weights_of_undisturbed_training(
    site: FaultSite, record_property: Callable[[str, object], None]
) -> None:
    skip_without("torchrun", "python3-torch")
    (site.judge / "train.py").write_text(RESUMING)
    arguments = "--enable-job-restart=True --enable-job-hang-detection=True --job-hang-interval=30"
    command = f"exec /usr/bin/python3 {site.judge}/train.py"
    env = {"OMP_NUM_THREADS": "1", "HANGS": "1"}
    job = site.submit("ddp", command, arguments, size=SIZE, framework=Framework.PYTORCH, env=env)
    site.follow([job], is_over)
    logs = [
        log_store.read(stream, 0, 1 << 20).data.decode()
        for stream in LogStream.objects.filter(attempt__job=job, attempt__number=2).order_by("index")
    ]
    assert decisions(job) == [("hang", "restarts_left", True)], logs
    first, second = Attempt.objects.filter(job=job).order_by("number")
    assert (first.fault or {})["index"] == 1, "whoever waits outside of the backward pass of the other"
    assert second.resumed_from == "step-4.pt"
    assert [log.splitlines()[-1] for log in logs] == ["4 True", "4 True"]
    [pause] = pauses(job)
    assert pause <= WITHIN_S
    record_property(f"hang in gloo on {site.quota.cluster.backend}, s until it ran again", pause)
