"""What a real Slurm says beforehand of a job, of which nothing is left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.backends.base import DryRunCheck, Unreachable
from jobs.backends.slurm.backend import SlurmBackend
from jobs.spec import CodeSource, NodeChoice, Resources
from jobs.states import ReasonCode
from tests.jobs.backends.benches import role
from tests.jobs.backends.slurm_bench import SlurmBench
from tests.waiting import wait_for


def by_what(found: list[DryRunCheck]) -> dict[str, DryRunCheck]:
    return {each.what: each for each in found}


def dry_run(bench: SlurmBench, *roles: object, **spec: object) -> dict[str, DryRunCheck]:
    return by_what(list(bench.backend.dry_run(bench.submission(*roles, **spec))))  # type: ignore[arg-type]


def test_dry_run_of_two_roles_reports_immediate_start_and_leaves_nothing(on_slurm: SlurmBench) -> None:
    found = dry_run(on_slurm, role(name="a", nodes=NodeChoice(only=("cpu2", "gpu2"))), role(name="b"))
    assert (found["accepted"].ok, found["room"].ok, found["user"].detail) == (True, True, "0")
    assert found["room"].detail
    assert on_slurm.live() == {}
    assert list(on_slurm.root.iterdir()) == []


def test_dry_run_of_waiting_job_reports_expected_start(on_slurm: SlurmBench) -> None:
    whole = ("--exclusive", "--nodelist=cpu1", "--time=90", "--output=/dev/null", "--wrap=sleep 300")
    number = on_slurm.slurm.call("sbatch", "--parsable", *whole).strip()
    try:
        wait_for(lambda: "RUNNING" in on_slurm.slurm.call("squeue", "-h", "-j", number, "-o", "%T"), 60)
        found = dry_run(on_slurm, role(nodes=NodeChoice(only=("cpu1",))))
        assert (found["accepted"].ok, found["room"].ok) == (True, None)
        reason = found["room"].reason
        assert reason is not None
        assert reason.code is ReasonCode.ENGINE_QUEUE
        assert isinstance(reason.params["start"], int)
    finally:
        on_slurm.slurm.call("scancel", number)


def test_dry_run_of_unacceptable_job_reports_reason(on_slurm: SlurmBench) -> None:
    found = dry_run(on_slurm, role(resources=Resources(gpus=9, gpu_type="a100")))
    assert found["accepted"].ok is False
    assert found["accepted"].reason is not None
    assert found["accepted"].reason.params["detail"] == "Requested node configuration is not available"
    found = dry_run(on_slurm, code=CodeSource(id="code-1"))
    assert found["accepted"].reason is not None
    assert found["accepted"].reason.params["why"] == "code_unknown"


def test_dry_run_without_slurm_answer_raises_unreachable(on_slurm: SlurmBench) -> None:
    away = SlurmBackend(replace(on_slurm.config, programs="/nowhere"))
    with pytest.raises(Unreachable):
        away.dry_run(on_slurm.submission())
