"""What an earlier start left behind."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from console.run.stale_processes import clear, stale_processes


def _record(run: Path, name: str, pid: int, started: float) -> None:
    (run / f"{name}.process").write_text(json.dumps({"pid": pid, "started": started, "short_lives": 0}))


@pytest.mark.parametrize(
    "command", [["sleep", "600"], ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]]
)
def test_stale_processes_are_ended_even_if_they_ignore_sigterm(
    tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.run.stale_processes.LEFTOVER_SECONDS", 0.5)
    with subprocess.Popen(command, start_new_session=True) as left:
        _record(tmp_path, "web", left.pid, time.time())
        assert [process.pid for process in stale_processes(tmp_path)] == [left.pid]
        clear(tmp_path)
        assert left.poll() is not None
    assert not list(tmp_path.iterdir())


def test_process_with_reused_pid_is_not_ended(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as stranger:
        _record(tmp_path, "web", stranger.pid, time.time() - 3600)
        assert list(stale_processes(tmp_path)) == []
        clear(tmp_path)
        assert stranger.poll() is None
        stranger.kill()


def test_records_of_dead_processes_and_damaged_ones_are_deleted(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    _record(tmp_path, "web", dead.pid, time.time())
    (tmp_path / "beat.process").write_text("{")
    clear(tmp_path)
    assert not list(tmp_path.iterdir())
