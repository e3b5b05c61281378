"""Supervisors start by a fork server, on which nothing depends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.backends.base import Handle, Observation
from jobs.backends.local import launch
from jobs.node import processes
from jobs.node.supervisor import layout
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, role, wait_until_over
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What is in the environment of this test's fork_servers alone."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    yield f"XDG_RUNTIME_DIR={tmp_path / 'runtime'}"
    launch.dismiss()


def fork_servers(mark: str) -> list[int]:
    return [pid for pid in processes.numbers() if _text(pid, "comm") == "jc-forkserver\n" and _has(pid, mark)]


def _has(pid: int, mark: str) -> bool:
    return mark in _text(pid, "environ").split("\0")


def _text(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def supervisor_of(local: LocalBench) -> int:
    """The only supervisor there is; for a moment, what it forks looks like another."""
    return wait_for(lambda: found[0] if len(found := local.processes("jc-supervisor")) == 1 else 0)


def succeeds(local: LocalBench, handle: Handle) -> bool:
    return wait_until_over(local.backend, handle).state is State.SUCCEEDED


def test_fork_server_starts_all_supervisors(local: LocalBench, mark: str) -> None:
    handles = [local.backend.submit(local.submission(role("exit 0"))) for _each in range(3)]
    assert all(succeeds(local, handle) for handle in handles)
    assert len(fork_servers(mark)) == 1


def test_supervisor_command_line_names_attempt(local: LocalBench, mark: str) -> None:
    handle = local.backend.submit(local.submission(role("exec sleep 60")))
    supervisor = supervisor_of(local)
    words = [sys.executable, "-I", "-S", str(launch.RUNNER), "supervise", str(local.attempt(handle))]
    wait_for(lambda: _text(supervisor, "cmdline").rstrip("\0").split("\0") == words)
    (server,) = fork_servers(mark)
    assert _text(server, "cmdline").rstrip("\0").split("\0") == [*words[:4], "fork-server"]


def test_killed_fork_server_is_replaced_while_supervisors_survive(local: LocalBench, mark: str) -> None:
    first = local.backend.submit(local.submission(role("exec sleep 60")))
    supervisor = supervisor_of(local)
    (killed,) = fork_servers(mark)
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: not fork_servers(mark))
    assert succeeds(local, local.backend.submit(local.submission(role("exit 0"))))
    wait_for(lambda: local.processes("jc-supervisor") == [supervisor])
    seen = local.backend.observe([first])[first]
    assert isinstance(seen, Observation)
    assert seen.state in {State.PENDING, State.RUNNING}


def test_unresponsive_fork_server_is_abandoned(
    local: LocalBench, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert succeeds(local, local.backend.submit(local.submission(role("exit 0"))))
    (frozen,) = fork_servers(mark)
    os.kill(frozen, signal.SIGSTOP)
    monkeypatch.setattr(launch, "TIMEOUT_S", 0.1)
    handle = local.backend.submit(local.submission(role("exit 0")))
    assert (local.attempt(handle) / layout.PLAN).exists()  # accepted; whoever looks next starts it
    monkeypatch.undo()
    os.utime(local.attempt(handle) / layout.LAUNCHED, (0, 0))
    assert succeeds(local, handle)
    os.kill(frozen, signal.SIGCONT)
    wait_for(lambda: frozen not in fork_servers(mark))


def test_supervisor_receives_current_environment(
    local: LocalBench, mark: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert succeeds(local, local.backend.submit(local.submission(role("exit 0"))))
    wait_for(lambda: not local.processes("jc-supervisor"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///elsewhere")
    local.backend.submit(local.submission(role("exec sleep 60")))
    supervisor = supervisor_of(local)
    assert _has(supervisor, "DOCKER_HOST=unix:///elsewhere")
    wait_for(lambda: len(fork_servers(mark)) == 1)


def test_fork_server_ends_with_its_parent_process(local: LocalBench, mark: str) -> None:
    submitter = local.submit_in_another_process(local.submission(role("exit 0")))
    handle = submitter.answer()
    submitter.end()
    assert succeeds(local, handle)
    wait_for(lambda: not fork_servers(mark))


def test_failed_supervisor_logs_reason_and_spares_others(local: LocalBench, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / layout.PLAN).write_text('{"format": 0}')
    launch.launch(broken, sys.executable)
    wait_for(lambda: "UnknownFormat" in (broken / layout.DIARY).read_text())
    assert succeeds(local, local.backend.submit(local.submission(role("exit 0"))))


def test_launch_with_invalid_python_raises_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no-python"):
        launch.launch(tmp_path, str(tmp_path / "no-python"))
    with pytest.raises(OSError, match="false"):
        launch.launch(tmp_path, "/bin/false")


def test_concurrent_launches_share_one_fork_server(local: LocalBench, mark: str) -> None:
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
    assert len(fork_servers(mark)) == 1
