"""How jobs end: by their counts, by the clock, by whoever asks, and by what goes wrong."""

import errno
import json
import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.backends.base import Handle, Observation
from jobs.node.supervisor import layout
from jobs.node.wrapper import wrapper
from jobs.node.wrapper.outcome import Cause, now
from jobs.spec import CompletionPolicy, EndSignal
from jobs.states import Phase, ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import LocalBench, log_of, replica, role, wait_until_over
from tests.waiting import wait_for

NEVER_FAILS = CompletionPolicy(min_failed=None)
FOREVER = "exec sleep 60"


class FullDisk:
    """A replica's folder on a disk that has room at the third try, or is gone by then."""

    def __init__(self, last: OSError | None) -> None:
        self.answers = [OSError(errno.ENOSPC, "full"), OSError(errno.EDQUOT, "full"), last]
        self.written: list[object] = []

    def write(self, name: str, value: object) -> None:
        if answer := self.answers.pop(0):
            raise answer
        self.written.append((name, value))


def wrapper_on(disk: FullDisk, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[float]]:
    """A wrapper whose replica's folder is on the disk, and the pauses that it makes."""
    pauses: list[float] = []
    monkeypatch.setattr(wrapper, "time", SimpleNamespace(sleep=pauses.append))
    made: Any = object.__new__(wrapper._Wrapper)
    made._replica = disk
    return made, pauses


def test_end_record_is_written_once_full_disk_has_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FullDisk(None)
    made, pauses = wrapper_on(disk, monkeypatch)
    ended = now(Cause.COMMAND, code=0)
    made._tell_end(ended)
    assert disk.written == [(layout.EXIT, ended.dump())]
    assert pauses == [wrapper._FULL_S] * 2


def test_full_disk_wait_ends_when_folder_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    made, pauses = wrapper_on(FullDisk(FileNotFoundError(errno.ENOENT, "gone")), monkeypatch)
    with pytest.raises(FileNotFoundError):
        made._tell_end(now(Cause.COMMAND, code=0))
    assert len(pauses) == 2


def test_tolerated_failures_are_reported_with_job_success(local: LocalBench) -> None:
    """The HelloWorld of the SCM page, on a machine that has no nvidia-smi."""
    command = role("no-such-program-anywhere", completion=NEVER_FAILS)
    seen = wait_until_over(local.backend, local.backend.submit(local.submission(command)))
    assert (seen.state, seen.reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED_WITH_FAILURES)
    assert seen.reason.params == {"failed": 1, "total": 1}
    one = replica(seen)
    assert one.reason is not None
    assert (one.state, one.exit_code, one.reason.code) == (ReplicaState.FAILED, 127, ReasonCode.EXIT_CODE)


def test_failed_replica_ends_others_and_is_named(local: LocalBench) -> None:
    roles = (
        role(FOREVER, name="ps"),
        role('[ "$PAI_TASK_INDEX" = 1 ] && { sleep 0.3; exit 9; }; exec sleep 60', replicas=3),
    )
    seen = wait_until_over(local.backend, local.backend.submit(local.submission(*roles)))
    assert seen.state is State.FAILED
    assert seen.reason.code is ReasonCode.EXIT_CODE
    assert seen.reason.params == {"role": "worker", "index": 1, "exit_code": 9}
    others = [one for one in seen.replicas if (one.role, one.index) != ("worker", 1)]
    assert {one.state for one in others} == {ReplicaState.STOPPED}
    assert {one.reason.code for one in others if one.reason} == {ReasonCode.JOB_ENDED}


def test_job_succeeds_after_enough_replica_successes(local: LocalBench) -> None:
    """TensorFlow's parameter servers never end by themselves (SCM page)."""
    roles = (
        role(FOREVER, name="ps", replicas=2),
        role("exit 0", replicas=2, completion=CompletionPolicy(min_failed=1, min_succeeded=2)),
    )
    seen = wait_until_over(local.backend, local.backend.submit(local.submission(*roles)))
    assert (seen.state, seen.reason.code) == (State.SUCCEEDED, ReasonCode.COMPLETED)
    assert {one.state for one in seen.replicas if one.role == "ps"} == {ReplicaState.STOPPED}


def test_finished_role_is_observed_beside_running_role(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("exit 0", name="prepare"), role("sleep 1")))

    def prepared() -> bool:
        seen = local.backend.observe([handle])[handle]
        assert isinstance(seen, Observation)
        return replica(seen, "prepare").state is ReplicaState.SUCCEEDED and seen.state is State.RUNNING

    wait_for(prepared)
    assert wait_until_over(local.backend, handle).state is State.SUCCEEDED


def test_background_processes_end_with_command(local: LocalBench) -> None:
    command = "setsid sleep 600 & (sleep 600 &) ; nohup sh -c 'sleep 600; echo late' & exit 0"
    handle = local.backend.submit(local.submission(role(command)))
    assert wait_until_over(local.backend, handle).state is State.SUCCEEDED
    wait_for(lambda: not local.processes())


def test_replica_killed_by_signal_reports_signal(local: LocalBench) -> None:
    seen = wait_until_over(local.backend, local.backend.submit(local.submission(role("kill -SEGV $$"))))
    one = replica(seen)
    assert (one.exit_code, one.signal) == (139, 11)
    assert seen.reason.code is ReasonCode.SIGNALLED
    assert seen.reason.params == {"role": "worker", "index": 0, "exit_code": 139, "signal": 11}


def test_time_limit_is_extended_while_job_runs(local: LocalBench) -> None:
    """Also by an agent that was killed in between."""
    handle = local.backend.submit(local.submission(role("echo up; exec sleep 600"), time_limit_s=9))
    wait_for(lambda: log_of(local.backend, handle) == "up\n")
    local.backend.extend(handle, 12)
    local.restart_controller()
    seen = wait_until_over(local.backend, handle)
    assert (seen.reason.code, seen.reason.params) == (ReasonCode.TIME_LIMIT, {"limit_s": 12})
    assert seen.started_at is not None
    assert seen.ended_at is not None
    assert seen.ended_at - seen.started_at > 11.9
    local.backend.extend(handle, 60)
    assert local.backend.observe([handle])[handle] == seen


def test_time_limit_ends_job_after_warning_signal(local: LocalBench) -> None:
    command = "trap 'echo warned' USR1; trap 'echo ended; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    submission = local.submission(
        role(command), time_limit_s=8, end_signal=EndSignal(signal="USR1", seconds_before=1), grace_s=30
    )
    handle = local.backend.submit(submission)
    seen = wait_until_over(local.backend, handle)
    assert (seen.state, seen.reason.code, seen.reason.params) == (
        State.STOPPED,
        ReasonCode.TIME_LIMIT,
        {"limit_s": 8},
    )
    assert _own_words(log_of(local.backend, handle)) == ["up", "warned", "ended"]
    assert seen.started_at is not None
    assert seen.ended_at is not None
    assert seen.ended_at - seen.started_at > 7.9
    assert replica(seen).state is ReplicaState.STOPPED
    assert replica(seen).exit_code == 0


def test_warning_signal_spares_process_without_handler(local: LocalBench) -> None:
    submission = local.submission(
        role("sleep 2; echo unharmed"),
        time_limit_s=30,
        end_signal=EndSignal(signal="USR1", seconds_before=29),
    )
    handle = local.backend.submit(submission)
    assert wait_until_over(local.backend, handle).state is State.SUCCEEDED
    assert log_of(local.backend, handle) == "unharmed\n"


def test_stop_grants_grace_to_whole_process_tree(local: LocalBench) -> None:
    child = "trap 'sleep 0.5; echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    handle = local.backend.submit(local.submission(role(f'bash -c "{child}"; echo never')))
    wait_for(lambda: "up" in log_of(local.backend, handle))
    local.backend.stop(handle, grace_s=10, signal="TERM")
    wait_until_over(local.backend, handle)
    assert log_of(local.backend, handle).splitlines()[-1] == "saved"


def test_stop_with_other_signal_is_followed_by_term(local: LocalBench) -> None:
    command = "trap 'echo usr1' USR1; trap 'echo term; exit 1' TERM; echo up; while :; do sleep 0.05; done"
    handle = local.backend.submit(local.submission(role(command)))
    wait_for(lambda: "up" in log_of(local.backend, handle))
    local.backend.stop(handle, grace_s=2, signal="USR1")
    seen = wait_until_over(local.backend, handle)
    assert _own_words(log_of(local.backend, handle)) == ["up", "usr1", "term"]
    assert seen.state is State.STOPPED


def test_second_stop_only_shortens_grace(local: LocalBench) -> None:
    handle = local.backend.submit(
        local.submission(role("trap '' TERM; echo up; while :; do sleep 0.1; done"))
    )
    wait_for(lambda: log_of(local.backend, handle))
    local.backend.stop(handle, grace_s=600, signal="TERM")
    wait_for(lambda: _phase(local, handle) is Phase.STOPPING)
    local.backend.stop(handle, grace_s=1, signal="TERM")
    wait_until_over(local.backend, handle)


def test_stop_before_agent_starts_runs_nothing(local: LocalBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.backends.local.launch.tend", lambda *_: None)
    handle = local.backend.submit(local.submission(role("echo started")))
    local.backend.stop(handle, grace_s=5, signal="TERM")
    monkeypatch.undo()
    seen = wait_until_over(local.backend, handle)
    assert (seen.state, replica(seen).state, replica(seen).started_at) == (
        State.STOPPED,
        ReplicaState.STOPPED,
        None,
    )
    assert log_of(local.backend, handle) == ""


def test_machine_restart_is_distinguished_from_crash(local: LocalBench) -> None:
    """What lies on the disk after a restart: the files, in another boot, and no process."""
    handle = local.backend.submit(
        local.submission(role("echo up; exec sleep 60", replicas=2, completion=NEVER_FAILS))
    )
    wait_for(lambda: log_of(local.backend, handle) and log_of(local.backend, handle, index=1))
    _pull_the_plug(local, handle)
    seen = wait_until_over(local.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.MACHINE_RESTARTED)
    assert {one.reason.code for one in seen.replicas if one.reason} == {ReasonCode.MACHINE_RESTARTED}
    assert log_of(local.backend, handle) == "up\n"


def test_killed_wrapper_fails_replica_and_ends_its_processes(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("setsid sleep 60 & echo up; wait")))
    wait_for(lambda: log_of(local.backend, handle))
    _kill(local, "jc-wrapper")
    seen = wait_until_over(local.backend, handle)
    one = replica(seen)
    assert one.reason is not None
    assert (one.state, one.exit_code, one.reason.code) == (ReplicaState.FAILED, 137, ReasonCode.WRAPPER_LOST)
    wait_for(lambda: not local.processes())


def test_job_with_removed_folder_stops_running(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("setsid sleep 60 & sleep 60", replicas=2)))
    wait_for(lambda: len(local.processes("sleep")) == 4)
    before = local.processes()
    shutil.rmtree(local.attempt(handle), ignore_errors=True)
    wait_for(lambda: not [pid for pid in before if Path(f"/proc/{pid}").exists()])


def _own_words(log: str) -> list[str]:
    """Without what the shell says of the children that were ended with it."""
    return [word for word in log.split() if word != "Terminated"]


def _phase(bench: LocalBench, handle: Handle) -> Phase:
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return seen.phase


def _kill(bench: LocalBench, name: str) -> None:
    for pid in bench.processes(name):
        os.kill(pid, signal.SIGKILL)


def _pull_the_plug(bench: LocalBench, handle: Handle) -> None:
    """Kill everything, and make the files those of an earlier boot."""
    attempt = bench.attempt(handle)
    bench.restart_controller()
    _kill(bench, "jc-wrapper")
    for router in bench.routers():
        os.kill(router, signal.SIGKILL)
    wait_for(lambda: not bench.processes() and not bench.agents())
    for path in [*attempt.glob("replicas/*/started"), attempt / "plan.json"]:
        value = json.loads(path.read_text())
        path.write_text(json.dumps({**value, "boot": "another"}))


def test_failed_replica_folder_is_reported_when_retained(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("echo x > trace; exit 3"), keep_failed_s=60))
    one = replica(wait_until_over(local.backend, handle))
    assert one.reason is not None
    assert one.reason.params == {
        "exit_code": 3,
        "kept_s": 60,
        "kept_folder": f"jobs/{local.attempt(handle).parent.name}/1/work/worker-0",
    }
    assert (local.home / str(one.reason.params["kept_folder"]) / "trace").read_text() == "x\n"
