"""What replicas write, and what of it their logs keep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.home import CHECKOUT
from jobs.backends.base import Handle
from jobs.node.sandbox.isolation import Isolation
from jobs.node.wrapper import log_writer
from jobs.node.wrapper.log_writer import Limits, LogWriter, open_log, open_pipe
from jobs.states import State
from tests.jobs.backends.benches import LocalBench, log_of, replica, role, wait_until_over
from tests.waiting import wait_for

MIB = 1 << 20


def log_file(bench: LocalBench, handle: Handle) -> Path:
    (found,) = bench.attempt(handle).glob("logs/*.output")
    return found


TAMPERS = """echo first; python3 - <<'END'
import fcntl, os
for what in (
    lambda: os.ftruncate(1, 0),
    lambda: os.ftruncate(1, 2_000_000_000),
    lambda: os.lseek(1, 0, os.SEEK_SET),
    lambda: os.pwrite(1, b'X', 0),
    lambda: fcntl.fcntl(1, fcntl.F_SETFL, 0),
    lambda: os.truncate('/proc/self/fd/1', 0),
    lambda: os.write(os.open('/proc/self/fd/1', os.O_WRONLY | os.O_TRUNC), b'anew\\n'),
):
    try: what()
    except OSError: pass
END
echo last"""


@pytest.mark.parametrize("isolation", [None, Isolation.NONE])
def test_log_survives_job_tampering_with_descriptors(
    bench_of: Callable[..., LocalBench], isolation: Isolation | None
) -> None:
    bench = bench_of(isolation=isolation)
    handle = bench.backend.submit(bench.submission(role(TAMPERS)))
    wait_until_over(bench.backend, handle)
    assert log_of(bench.backend, handle) == "first\nanew\nlast\n"
    assert log_file(bench, handle).stat().st_size == 16


def test_log_receives_text_of_reopened_streams(
    bench_of: Callable[..., LocalBench],
) -> None:
    bench = bench_of()
    handle = bench.backend.submit(bench.submission(role("echo out > /dev/stdout; echo oops > /dev/stderr")))
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert log_of(bench.backend, handle) == "out\noops\n"


def test_log_over_size_limit_is_bounded_and_keeps_end(bench_of: Callable[..., LocalBench]) -> None:
    bench = bench_of(log_mib=1)
    handle = bench.backend.submit(bench.submission(role("echo begin; yes x | head -c 5000000; echo end")))
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    said = log_of(bench.backend, handle)
    assert said.startswith("begin\n")
    assert "MiB dropped here: the log has reached 1 MiB]\n" in said
    assert said.endswith("x\nend\n")
    assert len(said) < 1.2 * MIB


def test_log_over_rate_limit_is_bounded_and_keeps_end(bench_of: Callable[..., LocalBench]) -> None:
    bench = bench_of(log_mib_s=1)
    handle = bench.backend.submit(bench.submission(role("yes x | head -c 90000000; echo end")))
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    size = log_file(bench, handle).stat().st_size
    assert 40 * MIB < size < 80 * MIB
    said = log_of(bench.backend, handle)[-100 * 1024 :] if size < 64 * MIB else ""
    assert not said or said.endswith("x\nend\n")


def test_log_has_no_gap_after_supervisor_is_killed(
    bench_of: Callable[..., LocalBench],
) -> None:
    bench = bench_of()
    command = f"while [ ! -e {bench.judge}/go ]; do sleep 0.01; done; seq 1000000"
    handle = bench.backend.submit(bench.submission(role(f"echo up; {command}")))
    wait_for(lambda: log_of(bench.backend, handle))
    (bench.judge / "go").touch()
    bench.restart_controller()
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    assert log_of(bench.backend, handle) == "up\n" + "".join(f"{n}\n" for n in range(1, 1_000_001))


def test_log_after_wrapper_kill_is_a_prefix_of_output(
    bench_of: Callable[..., LocalBench],
) -> None:
    bench = bench_of()
    handle = bench.backend.submit(bench.submission(role("seq 100000000")))
    wait_for(lambda: len(log_of(bench.backend, handle)) > MIB)
    for pid in bench.processes("jc-wrapper"):
        os.kill(pid, signal.SIGKILL)
    seen = wait_until_over(bench.backend, handle)
    assert replica(seen).reason is not None
    assert seen.state is State.FAILED
    lines = log_of(bench.backend, handle).split("\n")[:-1]
    assert lines == [str(n) for n in range(1, len(lines) + 1)]


# --- the writer alone ------------------------------------------------------------------------------------


def test_log_has_all_output_from_before_wrapper_kill(
    bench_of: Callable[..., LocalBench],
) -> None:
    bench = bench_of(isolation=Isolation.NONE)
    command = "echo first; kill -STOP $PPID; echo last; kill -KILL $PPID; exec sleep 600"
    handle = bench.backend.submit(bench.submission(role(command)))
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.FAILED
    assert log_of(bench.backend, handle) == "first\nlast\n"


PUMPS = """
import sys
from jobs.node.wrapper.log_writer import Limits, LogWriter, Pipe
file, reader, writer = map(int, sys.argv[1:])
log = LogWriter(file, Limits(), Pipe(reader, writer))
while True: log.pump()
"""


@pytest.mark.parametrize("size", range(500_000, 5_500_000, 500_000))
def test_log_has_no_gap_whenever_writer_is_killed(tmp_path: Path, size: int) -> None:
    path, pipe = tmp_path / "log", open_pipe((os.geteuid(), os.getegid()))
    file = open_log(path)
    arguments = [sys.executable, "-c", PUMPS, str(file), *map(str, pipe)]
    writer = subprocess.Popen(arguments, pass_fds=[file, *pipe], cwd=CHECKOUT)
    replica = subprocess.Popen(["seq", "100000000"], stdout=pipe.writer)
    try:
        wait_for(lambda: path.stat().st_size > size, interval=0)
    finally:
        for process in (writer, replica):
            process.kill()
            process.wait()
    LogWriter(file, Limits(), pipe).finish()
    for fd in (file, *pipe):
        os.close(fd)
    lines = path.read_text().split("\n")[:-1]
    assert lines == [str(n) for n in range(1, len(lines) + 1)]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(log_writer, "time", made)
    return made


@pytest.fixture
def writer_of(tmp_path: Path) -> Iterator[Callable[[Limits], LogWriter]]:
    made: list[LogWriter] = []
    file = open_log(tmp_path / "log")

    def make(limits: Limits) -> LogWriter:
        made.append(LogWriter(file, limits, open_pipe((os.geteuid(), os.getegid()))))
        return made[-1]

    yield make
    os.close(file)
    for one in made:
        os.close(one.fd)
        os.close(one.stream)


def test_log_writer_resumes_once_rate_allows(
    writer_of: Callable[[Limits], LogWriter], clock: Clock, tmp_path: Path
) -> None:
    writer = writer_of(Limits(rate=100_000))
    for _ in range(100):
        os.write(writer.stream, b"x" * 99_999 + b"\n")
        writer.pump()
    assert writer.size() == 6_000_000
    assert writer.due_at() == clock.now + 1
    os.write(writer.stream, b"the last line\n")
    writer.pump()
    clock.now += 1
    writer.pump()
    said = (tmp_path / "log").read_text()[6_000_000:]
    assert said == "\n[3.8 MiB dropped here: more than 97.7 KiB a second]\nthe last line\n"
    assert writer.due_at() is None


def test_log_writer_drops_output_while_disk_is_nearly_full(
    writer_of: Callable[[Limits], LogWriter], clock: Clock, tmp_path: Path
) -> None:
    writer = writer_of(Limits(keep_free=1 << 60))
    os.write(writer.stream, b"x" * 100_000 + b"\nnews\n")
    writer.pump()
    assert writer.size() == 0
    writer.finish()
    said = (tmp_path / "log").read_text()
    assert said.startswith("\n[97.7 KiB dropped here: the console's disk has less than ")
    assert said.endswith("\nnews\n")


def test_log_writer_tells_nothing_of_output_that_only_waited(
    writer_of: Callable[[Limits], LogWriter], clock: Clock, tmp_path: Path
) -> None:
    writer = writer_of(Limits(keep_free=1 << 60))
    os.write(writer.stream, b"line 1\nli")
    writer.pump()
    os.write(writer.stream, b"ne 2\n")
    writer.pump()
    assert writer.size() == 0
    writer.finish()
    assert (tmp_path / "log").read_text() == "line 1\nline 2\n"


def test_log_writer_survives_full_disk(clock: Clock) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    writer = LogWriter(full, Limits(), open_pipe((os.geteuid(), os.getegid())))
    os.write(writer.stream, b"lost\n")
    writer.pump()
    writer.finish()
    assert writer.size() == 0
    for fd in (full, writer.fd, writer.stream):
        os.close(fd)
