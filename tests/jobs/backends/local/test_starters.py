"""The starter set, run for real: what each says, and what it says where its program is missing."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Handle, Observation
from jobs.jobtemplates import SHIPPED
from jobs.jobtemplates.answers import build_spec
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, log_of, wait_until_over

SYSTEM_PYTHON = Path("/usr/bin/python3")
"""Debian's own, which has Debian's PyTorch where that is installed."""

SMALL: dict[str, Any] = {"gpus": 0, "cpus": 1, "memory": 1}


PROGRAMS = ("cat", "chmod", "env", "id", "mktemp", "python3")
"""What the starters need beside a shell and the program that each is about."""


def run(bench: LocalBench, template: str, path: str = "", **answers: Any) -> tuple[Handle, Observation]:
    """The template's job with these answers, once it is over."""
    asked = {each.name for each in SHIPPED[template].parameters}
    given = {name: value for name, value in {**SMALL, **answers}.items() if name in asked}
    spec = build_spec(SHIPPED[template], given)
    env = {**spec.env, **({"PATH": path} if path else {})}
    submission = bench.submission(*spec.roles, env=env, framework=spec.framework)
    handle = bench.backend.submit(submission)
    return handle, wait_until_over(bench.backend, handle)


def logs(bench: LocalBench, handle: Handle, seen: Observation) -> dict[str, str]:
    """What each replica wrote."""
    return {
        f"{one.role}-{one.index}": log_of(bench.backend, handle, one.role, one.index) for one in seen.replicas
    }


def test_helloworld_starter_prints_greeting(local: LocalBench) -> None:
    handle, seen = run(local, "helloworld")
    assert seen.state is State.SUCCEEDED
    assert "Hello, World! This is task 0 of Worker" in logs(local, handle, seen)["Worker-0"]


def test_sweep_starter_uses_given_learning_rate(local: LocalBench) -> None:
    handle, seen = run(local, "sweep", learning_rate="0.01")
    assert "learning rate 0.01, batch size 32, seed 1" in logs(local, handle, seen)["Worker-0"]


@cache
def has_torch() -> bool:
    """Whether the system's python can import it."""
    if not SYSTEM_PYTHON.exists():
        return False
    return (
        subprocess.run(
            [SYSTEM_PYTHON, "-c", "import torch.distributed"], capture_output=True, check=False
        ).returncode
        == 0
    )


def test_pytorch_starter_sums_values_across_roles(local: LocalBench) -> None:
    """A master and two workers add up 1, 2 and 3 over Gloo; each has the sum."""
    if not has_torch():
        pytest.skip("Debian's python3-torch is not installed")
    handle, seen = run(local, "pytorch-ddp", workers=2)
    told = logs(local, handle, seen)
    assert seen.state is State.SUCCEEDED, told
    assert set(told) == {"Master-0", "Worker-0", "Worker-1"}
    for rank, replica in enumerate(("Master-0", "Worker-0", "Worker-1")):
        assert f"rank {rank} of 3 over gloo: the sum is 6" in told[replica]


def test_pytorch_starter_runs_custom_training_script(local: LocalBench) -> None:
    if not has_torch():
        pytest.skip("Debian's python3-torch is not installed")
    script = local.judge / "train.py"
    script.write_text("import os, sys, torch; print('rank', os.environ['RANK'], sys.argv[1:])")
    handle, seen = run(local, "pytorch-ddp", train=f"{script} --epochs 3 $(reboot) *")
    assert seen.state is State.SUCCEEDED
    assert "rank 0 ['--epochs', '3', '$(reboot)', '*']" in logs(local, handle, seen)["Master-0"]


@pytest.mark.parametrize(
    ("template", "missing"),
    [("tensorflow-ps", "tensorflow"), ("mpi", "mpirun"), ("ray", "ray")],
)
def test_starter_without_its_program_logs_missing_program(
    local: LocalBench, template: str, missing: str
) -> None:
    (local.judge / "bin").mkdir()
    for program in PROGRAMS:
        (local.judge / "bin" / program).symlink_to(f"/usr/bin/{program}")
    handle, seen = run(local, template, path=str(local.judge / "bin"))
    told = logs(local, handle, seen)
    failed = [one for one in seen.replicas if one.exit_code == 127]
    assert (seen.state, bool(failed)) == (State.FAILED, True), told
    assert "is not installed where this job runs" in told[f"{failed[0].role}-{failed[0].index}"]
    assert missing in told[f"{failed[0].role}-{failed[0].index}"]
