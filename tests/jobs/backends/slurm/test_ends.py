"""Every way in which Slurm itself ends a job, or lets it wait again, each with its sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from subprocess import CalledProcessError
from typing import Any

import pytest

from jobs.backends.base import Handle, Observation
from jobs.backends.slurm.handles import SlurmJob
from jobs.messages import reason_message
from jobs.spec import NodeChoice, Resources, RetryPolicy
from jobs.states import Phase, ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import log_of, replica, role, wait_until_over
from tests.jobs.backends.slurm_bench import SlurmBench
from tests.waiting import wait_for

NEVER_AGAIN = RetryPolicy(fancy=False)
UP = 'echo "up $SLURM_RESTART_COUNT"; [ -n "$SLURM_RESTART_COUNT" ] || sleep 600'


def running(bench: SlurmBench, node: str = "cpu1", **spec: Any) -> tuple[Handle, str]:
    """A job that runs on `node`, and its number."""
    one = role(UP, nodes=NodeChoice(only=(node,)))
    handle = bench.backend.submit(bench.submission(one, **spec))
    wait_for(lambda: log_of(bench.backend, handle), 60)
    return handle, str(SlurmJob.of(handle).number)


def seen_of(bench: SlurmBench, handle: Handle) -> Observation:
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return seen


def sentence(seen: Observation) -> str:
    return reason_message(seen.reason.code, seen.reason.params)


def runs_again(bench: SlurmBench, handle: Handle) -> Observation:
    """Its second run, which Slurm would begin only after two minutes, to its end."""

    def waits() -> bool:
        seen = seen_of(bench, handle)
        return (seen.state, seen.run, seen.phase) == (State.PENDING, 2, Phase.RESTARTING)

    wait_for(waits, 60)
    bench.slurm.call("scontrol", "update", f"JobId={SlurmJob.of(handle).number}", "StartTime=now")
    return wait_until_over(bench.backend, handle, 60)


@pytest.fixture
def node_fails(on_slurm: SlurmBench) -> Iterator[None]:
    """A node that the test may take down."""
    yield
    with suppress(CalledProcessError):  # it has come back by itself
        on_slurm.slurm.call("scontrol", "update", "NodeName=cpu1", "State=RESUME")


def take_down(bench: SlurmBench) -> None:
    bench.slurm.call("scontrol", "update", "NodeName=cpu1", "State=DOWN", "Reason=test")


@pytest.mark.usefixtures("node_fails")
def test_job_without_retry_ends_with_its_lost_node(on_slurm: SlurmBench) -> None:
    handle, _number = running(on_slurm, retry=NEVER_AGAIN)
    take_down(on_slurm)
    seen = wait_until_over(on_slurm.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.NODE_LOST)
    assert sentence(seen) == "Ended: node cpu1 failed."
    assert replica(seen).state is not ReplicaState.RUNNING


@pytest.mark.usefixtures("node_fails")
def test_job_runs_again_elsewhere_after_node_loss(on_slurm: SlurmBench) -> None:
    handle, number = running(on_slurm)
    take_down(on_slurm)
    on_slurm.slurm.call("scontrol", "update", f"JobId={number}", "ReqNodeList=cpu2")
    seen = runs_again(on_slurm, handle)
    assert (seen.state, seen.run, replica(seen).node) == (State.SUCCEEDED, 2, "cpu2")


def test_preempted_job_ends_or_runs_again(on_slurm: SlurmBench) -> None:
    again, _number = running(on_slurm, "cpu2")
    ended, _number = running(on_slurm, "cpu2", retry=NEVER_AGAIN)
    urgent = ("--parsable", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=true")
    on_slurm.slurm.call("sbatch", *urgent)
    seen = wait_until_over(on_slurm.backend, ended)
    assert (seen.state, seen.reason.code) == (State.STOPPED, ReasonCode.PREEMPTED)
    assert sentence(seen) == "Preempted by Slurm for jobs with a higher priority."
    assert runs_again(on_slurm, again).state is State.SUCCEEDED


def test_time_limit_is_enforced_by_slurm(on_slurm: SlurmBench) -> None:
    handle, number = running(on_slurm)
    on_slurm.slurm.call("scontrol", "update", f"JobId={number}", "EndTime=now+1")
    seen = wait_until_over(on_slurm.backend, handle, 120)
    assert (seen.state, seen.reason.code) == (State.STOPPED, ReasonCode.TIME_LIMIT)
    assert sentence(seen).startswith("Ended by Slurm: time limit reached.")


def test_job_missing_its_deadline_never_starts(on_slurm: SlurmBench) -> None:
    whole = role("sleep 600", nodes=NodeChoice(only=("cpu1",)), resources=Resources(cpu_milli=16_000))
    holder, handle = (on_slurm.backend.submit(on_slurm.submission(whole)) for _ in range(2))
    wait_for(lambda: seen_of(on_slurm, holder).state is State.RUNNING, 60)
    on_slurm.slurm.call("scontrol", "update", f"JobId={SlurmJob.of(handle).number}", "Deadline=now+1")
    seen = wait_until_over(on_slurm.backend, handle, 120)
    assert (seen.state, seen.reason.code) == (State.STOPPED, ReasonCode.TIME_LIMIT)
    assert sentence(seen) == "Ended by Slurm: can't finish before the deadline."


def test_suspended_job_reports_suspension_and_resumes(on_slurm: SlurmBench) -> None:
    handle, number = running(on_slurm)
    on_slurm.slurm.call("scontrol", "suspend", number)
    wait_for(lambda: seen_of(on_slurm, handle).reason.params, 60)
    seen = seen_of(on_slurm, handle)
    assert seen.state is State.RUNNING
    assert sentence(seen).startswith("Suspended in Slurm.")
    on_slurm.slurm.call("scontrol", "resume", number)
    wait_for(lambda: not seen_of(on_slurm, handle).reason.params, 60)
    on_slurm.slurm.call("scancel", number)
    assert sentence(wait_until_over(on_slurm.backend, handle)) == "Cancelled in Slurm, not from this console."


def test_held_requeued_job_reports_hold_until_released(on_slurm: SlurmBench) -> None:
    handle, number = running(on_slurm)
    on_slurm.slurm.call("scontrol", "requeuehold", number)
    wait_for(lambda: seen_of(on_slurm, handle).run == 2, 60)
    seen = wait_for(lambda: held(on_slurm, handle), 60)
    assert sentence(seen).startswith("Requeued and held in Slurm.")
    on_slurm.slurm.call("scontrol", "release", number)
    on_slurm.slurm.call("scontrol", "update", f"JobId={number}", "StartTime=now")
    assert wait_until_over(on_slurm.backend, handle).state is State.SUCCEEDED


def held(bench: SlurmBench, handle: Handle) -> Observation | None:
    seen = seen_of(bench, handle)
    return seen if seen.state is State.PENDING and seen.reason.code is ReasonCode.ENGINE_QUEUE else None
