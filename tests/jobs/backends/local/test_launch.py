"""One agent looks after all attempts of a root, and nothing depends on that very process."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest

from console.home import CHECKOUT
from jobs.backends.base import Handle, Observation
from jobs.backends.local import launch
from jobs.node import processes
from jobs.node.supervisor import layout
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, log_of, role, text_of, wait_until_over
from tests.waiting import wait_for


def agent_of(local: LocalBench) -> int:
    """Return the agent, once it is the only one."""
    return wait_for(lambda: found[0] if len(found := local.agents()) == 1 else 0)


def fork_server_of(agent: int) -> int:
    """Return the fork server that the agent has begun."""

    def find() -> int:
        children = (pid for pid, parent in processes.parents().items() if parent == agent)
        return next((pid for pid in children if text_of(pid, "comm") == "jc-forkserver\n"), 0)

    return wait_for(find)


def start(local: LocalBench, command: str) -> Handle:
    """Start a job and wait until it says something."""
    handle = local.backend.submit(local.submission(role(f"echo up; {command}")))
    wait_for(lambda: log_of(local.backend, handle) == "up\n")
    return handle


def is_alive(local: LocalBench, handle: Handle) -> bool:
    seen = local.backend.observe([handle])[handle]
    return isinstance(seen, Observation) and seen.state in {State.PENDING, State.RUNNING}


def succeeds(local: LocalBench, handle: Handle) -> bool:
    return wait_until_over(local.backend, handle).state is State.SUCCEEDED


def test_agent_starts_all_wrappers_by_one_fork_server(local: LocalBench) -> None:
    handles = [local.backend.submit(local.submission(role("exit 0"))) for _each in range(3)]
    first, server = agent_of(local), fork_server_of(agent_of(local))
    assert all(succeeds(local, handle) for handle in handles)
    assert (agent_of(local), fork_server_of(first)) == (first, server)
    words = [sys.executable, "-I", "-S", str(launch.RUNNER)]
    assert text_of(first, "cmdline").split("\0")[:-1] == [*words, "agent", str(local.config.root)]
    assert text_of(server, "cmdline").rstrip("\0").split("\0") == [*words, "fork-server"]


def test_wrapper_command_line_names_attempt(local: LocalBench) -> None:
    handle = start(local, "exec sleep 60")
    (wrapper,) = local.processes("jc-wrapper")
    words = [sys.executable, "-I", "-S", str(launch.RUNNER), "wrapper", str(local.attempt(handle))]
    assert text_of(wrapper, "cmdline").rstrip("\0").split("\0") == words
    assert psutil.Process(wrapper).ppid() == fork_server_of(agent_of(local))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_signalled_fork_server_delays_no_more_than_one_start(
    local: LocalBench, number: signal.Signals
) -> None:
    first = start(local, "exec sleep 60")
    os.kill(fork_server_of(agent_of(local)), number)
    assert succeeds(local, local.backend.submit(local.submission(role("exit 0"))))
    assert is_alive(local, first)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_signalled_agent_is_replaced_or_woken_when_looked_at(
    local: LocalBench, number: signal.Signals
) -> None:
    first = start(local, f"until [ -e {local.judge}/go ]; do sleep 0.02; done")
    os.kill(agent_of(local), number)
    (local.judge / "go").touch()
    assert succeeds(local, first)


def test_agents_started_at_once_leave_one(local: LocalBench) -> None:
    root = local.config.root
    first = start(local, "exec sleep 60")
    os.kill(agent_of(local), signal.SIGKILL)
    wait_for(lambda: not local.agents())
    threads = [threading.Thread(target=launch._start_agent, args=(root, sys.executable)) for _each in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert agent_of(local)
    assert is_alive(local, first)


def test_agent_of_other_release_hands_running_and_starting_jobs_over(
    local: LocalBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = CHECKOUT / "jobs"
    for name in ("node", "data_mover"):
        shutil.copytree(code / name, tmp_path / "jobs" / name)
    for path in code.glob("*.py"):
        shutil.copy(path, tmp_path / "jobs")
    (tmp_path / "jobs" / "node" / "more.py").touch()
    monkeypatch.setattr(launch, "RUNNER", tmp_path / "jobs" / "node" / "runner.py")
    monkeypatch.setattr(launch, "_is_current", lambda _release: True)
    running = start(local, f"until [ -e {local.judge}/go ]; do sleep 0.02; done")
    starting = local.backend.submit(local.submission(role("exit 0")))
    earlier = agent_of(local)
    monkeypatch.undo()
    assert succeeds(local, starting)
    assert agent_of(local) != earlier
    (local.judge / "go").touch()
    assert succeeds(local, running)


def test_broken_attempt_is_logged_and_others_go_on(local: LocalBench) -> None:
    broken = local.config.root / "broken" / "1"
    broken.mkdir(parents=True)
    (broken / layout.PLAN).write_text('{"format": 0}')
    launch.tend(local.config.root, sys.executable, ["x-broken-1"])
    wait_for(
        lambda: (broken / layout.DIARY).exists() and "UnknownFormat" in (broken / layout.DIARY).read_text()
    )
    assert succeeds(local, local.backend.submit(local.submission(role("exit 0"))))
    (broken / layout.PLAN).unlink()


def test_agent_with_invalid_python_raises_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no-python"):
        launch.ensure_agent(tmp_path, str(tmp_path / "no-python"))
    with pytest.raises(OSError, match="false"):
        launch.ensure_agent(tmp_path, "/bin/false")


def test_concurrent_submissions_share_one_agent(local: LocalBench) -> None:
    handles: list[Handle] = []

    def submit() -> None:
        handles.append(local.backend.submit(local.submission(role("exit 0"))))

    threads = [threading.Thread(target=submit) for _each in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(succeeds(local, handle) for handle in handles)
    assert len(handles) == 6
    assert agent_of(local)
