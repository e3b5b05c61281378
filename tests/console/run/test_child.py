"""What happens between supervisord and a program."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from console.home import CHECKOUT
from console.run.child import LIVED_WELL, LONGEST_PAUSE, Record, next_record, pause, read_record
from tests.waiting import wait_for

BEGINS = "import os, sys, pathlib; from console.run import child; child.begin(pathlib.Path(sys.argv[1]))"
THEN = "os.execvp(sys.argv[2], sys.argv[2:])"
CHILD = [sys.executable, "-c", f"{BEGINS}; {THEN}"]
"""As supervisord's child does for what is no Python."""


def test_program_with_a_long_life_restarts_without_delay() -> None:
    before = Record(pid=1, started=100.0, short_lives=3)
    assert next_record(before, 100.0 + LIVED_WELL, pid=2) == Record(2, 100.0 + LIVED_WELL, 0)


def test_short_lives_in_a_row_are_counted() -> None:
    record = next_record(None, 100.0, pid=1)
    for number in range(1, 9):
        record = next_record(record, record.started + 1, pid=number)
        assert record.short_lives == number


def test_restart_pauses_grow_up_to_a_limit() -> None:
    pauses = [pause(lives) for lives in range(12)]
    assert pauses[0] == 0.0
    assert pauses[1] == 0.5
    assert pauses == sorted(pauses)
    assert set(pauses[6:]) == {LONGEST_PAUSE}


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"pid": 1}', "[1]"])
def test_damaged_process_record_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.process").write_text(text)
    assert read_record(tmp_path / "x.process") is None


def test_child_becomes_the_program_and_records_its_pid(tmp_path: Path) -> None:
    record = tmp_path / "x.process"
    code = "import os, sys; print(os.getpid(), sys.argv[1:])"
    command = [*CHILD, str(record), sys.executable, "-c", code, "a b", "%"]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as process:
        said, _ = process.communicate(timeout=60)
    assert said.strip() == f"{process.pid} ['a b', '%']"
    written = read_record(record)
    assert written is not None
    assert written.pid == process.pid
    assert abs(written.started - time.time()) < 30


def test_program_waits_after_a_second_short_life(tmp_path: Path) -> None:
    record = tmp_path / "x.process"
    record.write_text(json.dumps({"pid": 1, "started": time.time(), "short_lives": 1}))
    began = time.monotonic()
    subprocess.run([*CHILD, str(record), "true"], cwd=CHECKOUT, check=True, timeout=60)
    assert time.monotonic() - began >= pause(2)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's end")
def test_child_of_an_ended_parent_ends_at_once() -> None:
    code = "import os; from console.run.child import die_with_parent; die_with_parent({}); print('lives')"
    for parent, said in ((os.getpid(), "lives\n"), (os.getppid(), "")):
        command = [sys.executable, "-c", code.format(parent)]
        done = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=False)
        assert (done.stdout, done.returncode) == (said, 0 if said else -signal.SIGTERM)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's end")
def test_program_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    record = tmp_path / "x.process"
    code = f"import subprocess; subprocess.run({[*CHILD, str(record), 'sleep', '600']!r})"
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT)
    started = wait_for(lambda: read_record(record))
    assert started is not None
    program = psutil.Process(started.pid)
    wait_for(lambda: program.name() == "sleep")
    os.kill(parent.pid, 9)
    parent.wait()
    program.wait(60)
