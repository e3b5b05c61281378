"""Failed replicas of attempts that go on: started again, or counted as failed, by an order."""

from pathlib import Path

import pytest

from jobs.backends.base import FailedRun, Handle, Observation, ReplicaRef, ReplicaSeen
from jobs.node.supervisor import restart_lines
from jobs.spec import FaultTolerance, RestartScope
from jobs.states import ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import LocalBench, log_of, replica, role, wait_until_over
from tests.waiting import wait_for

ALONE = FaultTolerance(enabled=True, restart_scope=RestartScope.REPLICA)
FAILS_ONCE = """
echo "run $(cat FOLDER/starts 2>/dev/null | wc -l)"; echo started >> FOLDER/starts
[ "$(wc -l < FOLDER/starts)" = 1 ] && exit 9
touch FOLDER/done
"""
WAITS = "echo begun >> FOLDER/peer; until [ -e FOLDER/done ]; do sleep 0.1; done"


def submit(local: LocalBench) -> Handle:
    """Submit a job whose worker fails once, beside a replica that waits for it."""
    roles = [
        role(command.replace("FOLDER", str(local.judge)), name=name)
        for name, command in (("worker", FAILS_ONCE), ("peer", WAITS))
    ]
    return local.backend.submit(local.submission(*roles, fault_tolerance=ALONE, grace_s=1))


def find_failed(local: LocalBench, handle: Handle) -> ReplicaSeen | None:
    seen = local.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return next((each for each in seen.replicas if each.failed_run), None)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_failed_replica_is_started_again_while_the_others_run(local: LocalBench) -> None:
    handle = submit(local)
    failed = wait_for(lambda: find_failed(local, handle))
    assert (failed.role, failed.state) == ("worker", ReplicaState.WAITING)
    assert failed.failed_run is not None
    reason = failed.failed_run.reason
    assert (failed.failed_run.run, reason.code) == (1, ReasonCode.EXIT_CODE)
    assert failed.failed_run.exit_code == 9
    worker = ReplicaRef("worker", 0)
    for restarts in (True, True, False):
        local.backend.order_restart(handle, worker, 1, restarts=restarts)
    seen = wait_until_over(local.backend, handle)
    assert seen.state is State.SUCCEEDED
    assert len(lines(local.judge / "starts")) == 2
    assert lines(local.judge / "peer") == ["begun"], "the other replica was not touched"
    log = [line for line in log_of(local.backend, handle).splitlines() if line]
    assert log == ["run 0", f"{restart_lines.TEXT} 2", "run 1"]
    local.backend.order_restart(handle, worker, 2, restarts=True)
    assert local.backend.observe([handle])[handle] == seen


def test_failed_replica_that_is_not_started_again_fails_the_attempt(local: LocalBench) -> None:
    handle = submit(local)
    wait_for(lambda: find_failed(local, handle))
    local.backend.order_restart(handle, ReplicaRef("worker", 0), 1, restarts=False)
    seen = wait_until_over(local.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.EXIT_CODE)
    assert (replica(seen).state, replica(seen, "peer").state) == (ReplicaState.FAILED, ReplicaState.STOPPED)


def test_stop_ends_a_replica_that_waits_for_an_order(local: LocalBench) -> None:
    handle = submit(local)
    wait_for(lambda: find_failed(local, handle))
    local.backend.stop(handle, grace_s=1, signal="TERM")
    seen = wait_until_over(local.backend, handle)
    assert seen.state is State.STOPPED
    assert replica(seen).exit_code == 9


@pytest.mark.parametrize("point", ["", "agent.before_restart", "agent.after_restart"])
def test_replica_is_started_again_once_whenever_the_agent_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    monkeypatch.setenv("CONSOLE_FAULTS", str(faults))
    bench = LocalBench(tmp_path)
    try:
        handle = submit(bench)
        failed = wait_for(lambda: find_failed(bench, handle))
        if point:
            (faults / point).write_text("KILL")
        else:
            bench.restart_controller()
            assert wait_for(lambda: find_failed(bench, handle)) == failed
        bench.backend.order_restart(handle, ReplicaRef("worker", 0), 1, restarts=True)
        seen = wait_until_over(bench.backend, handle)
        assert bool(list(faults.glob("*.taken.*"))) is bool(point)
        assert seen.state is State.SUCCEEDED
        assert isinstance(failed.failed_run, FailedRun)
        assert len(lines(bench.judge / "starts")) == 2
        assert lines(bench.judge / "peer") == ["begun"]
    finally:
        bench.close()
