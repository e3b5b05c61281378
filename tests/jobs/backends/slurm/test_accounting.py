"""Slurm with its accounting: what it remembers of jobs that its controller has forgotten."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.backends.base import Handle, Observation, Unseen
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.layout import Sent
from jobs.messages import reason_message
from jobs.states import ReasonCode, State, TaskState
from tests import slurm as slurms
from tests.jobs.backends.benches import replica, role
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.slurm import Slurm
from tests.waiting import wait_for

LONG = 120
"""Seconds that a busy machine may take."""


@pytest.fixture(scope="module")
def accounted() -> Iterator[Slurm]:
    """A Slurm with accounting of this module's own: the only one, so that it is started once."""
    if lacking := slurms.missing(accounting=True):
        pytest.skip(lacking)
    with slurms.server(accounting=True) as running:
        yield running


@pytest.fixture
def bench(tmp_path: Path, accounted: Slurm) -> Iterator[SlurmBench]:
    made = SlurmBench(tmp_path, accounted)
    yield made
    made.close()


@pytest.fixture
def without_slurmdbd(accounted: Slurm) -> Iterator[Callable[[], None]]:
    """Takes slurmdbd away, and what is called at the end brings it back."""
    yield lambda: accounted.kill("slurmdbd")
    if "slurmdbd" not in accounted.running:
        accounted.start_accounting()


def forgotten(bench: SlurmBench, handles: list[Handle]) -> None:
    """Wait until the controller knows none of them, and accounting how each ended; nothing that their runs
    wrote is left.
    """
    numbers = {str(Sent.of(handle).number) for handle in handles}
    asked = ("sacct", "--noheader", "--parsable2", "--allocations", "--format=JobIDRaw,End")

    def ended() -> bool:
        known = bench.slurm.call("squeue", "--noheader", "--states=all", "--format=%A").split()
        told = bench.slurm.call(*asked, f"--jobs={','.join(sorted(numbers))}")
        ends = dict(line.split("|") for line in told.split())
        return not numbers & set(known) and numbers == {key for key, end in ends.items() if end != "Unknown"}

    wait_for(ended, LONG, 0.2)
    for handle in handles:
        for run in bench.attempt(Handle(Sent.of(handle).key)).glob("run-*"):
            shutil.rmtree(run)


def look(backend: SlurmBackend, handles: list[Handle]) -> list[Observation]:
    seen = backend.observe(handles)
    found = [seen[handle] for handle in handles]
    assert all(isinstance(what, Observation) for what in found), found
    return [what for what in found if isinstance(what, Observation)]


def test_what_the_controller_forgot_is_looked_up(
    bench: SlurmBench, without_slurmdbd: Callable[[], None]
) -> None:
    commands = ("true", "exit 3", "kill -9 $$", "sleep 600")
    handles = [bench.backend.submit(bench.submission(role(command))) for command in commands]
    wait_for(lambda: look(bench.backend, handles)[3].state is State.RUNNING, LONG)
    bench.slurm.call("scancel", str(Sent.of(handles[3]).number))
    forgotten(bench, handles)
    by_command_line = bench.backend
    by_rest_too = SlurmBackend(
        SlurmConfig.from_settings(bench.folder, {**bench.told, **by_rest(bench.slurm)})
    )

    without_slurmdbd()
    for backend in (by_command_line, by_rest_too):
        for what in backend.observe(handles).values():
            assert isinstance(what, Unseen)
            assert what.why.startswith("slurmdbd does not say how jobs ended")
    bench.slurm.start_accounting()
    wait_for(
        lambda: not any(isinstance(what, Unseen) for what in by_rest_too.observe(handles).values()), LONG
    )

    for backend in (by_command_line, by_rest_too):
        good, failed, killed, cancelled = look(backend, handles)
        assert [each.state for each in (good, failed, killed)] == [
            State.SUCCEEDED,
            State.FAILED,
            State.FAILED,
        ]
        assert (replica(good).state, replica(good).exit_code) == (TaskState.SUCCEEDED, 0)
        assert good.ended_at
        assert replica(good).node.startswith("cpu")
        said = reason_message(cancelled.reason.code, cancelled.reason.params)
        assert (cancelled.state, said) == (State.STOPPED, "Cancelled at Slurm, not from here.")
    _good, failed, killed, _cancelled = look(by_command_line, handles)
    assert failed.reason.params == {"exit_code": 3}
    assert (killed.reason.code, replica(killed).signal) == (ReasonCode.SIGNALLED, 9)
    assert look(by_rest_too, handles)[1].reason.params == {}  # v0.0.38 does not tell it
