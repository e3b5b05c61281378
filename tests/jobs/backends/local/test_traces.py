"""What an attempt leaves where: logs and their indexes, hints, and nothing once it is forgotten."""

import os
import time
from pathlib import Path

import psutil
import pytest

from jobs.backends.base import LogState, ReplicaRef, Unreachable
from jobs.backends.local import allocations
from jobs.node.supervisor.layout import Layout
from jobs.node.wrapper.log_times import ENTRY
from jobs.spec import Resources
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, log_of, replica, role, wait_until_over
from tests.waiting import wait_for

WORKER = ReplicaRef("worker", 0)


def test_log_line_is_readable_as_soon_as_written(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("echo one; exec sleep 60")))
    wait_for(lambda: log_of(local.backend, handle) == "one\n")
    part = local.backend.read_log(handle, WORKER, "", 2)
    assert (part.data, part.cursor, part.state) == (b"on", "2", LogState.OPEN)
    assert local.backend.read_log(handle, WORKER, "4", 10).state is LogState.OPEN


def test_log_is_open_before_start_and_gone_for_unknown_replica(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("sleep 0.3")))
    assert local.backend.read_log(handle, WORKER, "", 10).state is LogState.OPEN
    assert local.backend.read_log(handle, ReplicaRef("worker", 1), "", 10).state is LogState.GONE
    assert local.backend.read_log(handle, ReplicaRef("nobody", 0), "", 10).state is LogState.GONE
    assert local.backend.read_log(handle, ReplicaRef("worker", 0, run=2), "", 10).state is LogState.GONE
    wait_until_over(local.backend, handle)
    assert local.backend.read_log(handle, WORKER, "", 10).state is LogState.COMPLETE


def test_log_cursor_beyond_end_reports_truncation(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("echo one")))
    wait_until_over(local.backend, handle)
    part = local.backend.read_log(handle, WORKER, "1000", 10)
    assert (part.data, part.cursor, part.state) == (b"", "4", LogState.TRUNCATED)


def test_log_replaced_by_link_is_not_read(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("echo one")))
    seen = wait_until_over(local.backend, handle)
    path = Path(replica(seen).log_path)
    path.rename(f"{path}.away")
    path.symlink_to("/etc/passwd")
    assert local.backend.read_log(handle, WORKER, "", 10).data == b""


def test_log_of_several_megabytes_arrives_whole(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("head -c 8000000 /dev/urandom | base64")))
    wait_until_over(local.backend, handle)
    path = Path(replica(wait_until_over(local.backend, handle)).log_path)
    assert len(log_of(local.backend, handle)) == path.stat().st_size > 10_000_000


def test_log_times_tell_when_each_output_came(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("echo one; sleep 1; echo two; date +%s%3N")))
    before = time.time() * 1000
    wait_until_over(local.backend, handle)
    data = (local.attempt(handle) / "logs/worker-0.times").read_bytes()
    (first, began), (second, at) = ENTRY.iter_unpack(data)
    assert (first, second) == (0, 4)
    assert before <= began <= at - 900
    assert abs(at - int(log_of(local.backend, handle).split()[-1])) < 200


def test_bell_rings_on_attempt_change(local: LocalBench) -> None:
    bell = local.config.bell
    assert bell is not None
    handle = local.backend.submit(local.submission(role("exec sleep 60")))
    wait_for(bell.exists)
    wait_for(lambda: local.backend.observe([handle])[handle].state is State.RUNNING)  # type: ignore[union-attr]
    rung = bell.stat().st_mtime_ns
    local.backend.stop(handle, grace_s=0, signal="KILL")
    wait_until_over(local.backend, handle)
    wait_for(lambda: bell.stat().st_mtime_ns > rung)


def test_running_attempt_cannot_be_forgotten(local: LocalBench) -> None:
    handle = local.backend.submit(local.submission(role("exec sleep 60")))
    with pytest.raises(Unreachable):
        local.backend.forget(handle)
    assert local.attempt(handle).exists()


def test_attempt_folder_is_removed_despite_unusual_content(local: LocalBench) -> None:
    command = """
    mkdir -p closed/inner && touch closed/inner/file && chmod 000 closed
    ln -s / everything
    python3 -c 'import os; [(os.mkdir("deeper"), os.chdir("deeper")) for _ in range(1500)]'
    """
    quick = Resources(cpu_milli=2000, memory_mib=64)
    handle = local.backend.submit(local.submission(role(command, resources=quick)))
    assert wait_until_over(local.backend, handle).state is State.SUCCEEDED
    local.backend.forget(handle)
    assert not local.attempt(handle).parent.exists()
    assert Path("/etc/passwd").exists()


def test_removal_records_expire_after_some_months(local: LocalBench) -> None:
    layout = Layout(local.config.root)
    old = layout.removal_record("inst-abc-1", months_ago=allocations.MONTHS + 1)
    old.parent.mkdir(parents=True)
    old.touch()
    assert not allocations.is_forgotten(layout, "inst-abc-1")
    allocations.record_removal(layout, "inst-abc-2")
    assert allocations.is_forgotten(layout, "inst-abc-2")
    assert not old.exists()


def test_agent_inherits_nothing_from_console(local: LocalBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSOLE_SECRET", "of the console")
    handle = local.backend.submit(local.submission(role("exec sleep 60")))
    wait_for(lambda: local.processes("jc-wrapper"))
    (agent,) = local.agents()
    assert "of the console" not in Path(f"/proc/{agent}/environ").read_text()
    assert os.getsid(agent) != os.getsid(0)
    assert psutil.Process(agent).ppid() != os.getpid()
    assert "pydantic" not in Path(f"/proc/{agent}/maps").read_text()
    assert local.attempt(handle).stat().st_mode & 0o777 == 0o700
    assert (local.config.root / ".agent.sock").stat().st_mode & 0o777 == 0o600
