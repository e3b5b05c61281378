"""Killed or frozen anywhere: nothing is lost, nothing runs twice, nothing is left behind.

The judge is a file outside the console to which each start of a replica appends a line.
"""

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs import faults as faults_module
from jobs.backends.base import Handle, Observation, Submission
from jobs.backends.local import cgroups
from jobs.backends.local.isolation import Isolation
from jobs.faults import POINTS
from jobs.spec import CompletionPolicy, EndSignal
from jobs.states import TASK_TERMINAL, TERMINAL, ReasonCode, State, TaskState
from tests.jobs.backends.benches import LocalBench, log_of, replica, role
from tests.waiting import wait_for

pytestmark = pytest.mark.kill

SOURCES = Path(__file__).parents[4] / "jobs" / "backends" / "local"
MINE = [point for point in POINTS if point.split(".")[0] in ("local", "supervisor", "wrapper")]

WORKER = """
echo started >> {judge}/starts
trap 'echo warned; echo warned >> {judge}/warned' USR1
i=0
while [ $i -lt 400 ]; do i=$((i+1)); echo line $i; echo line $i >> {judge}/lines; sleep 0.01; done
"""


@pytest.fixture(params=["kill", "stop", "kill-none"])
def hit(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[LocalBench, str]]:
    how, _, isolation = request.param.partition("-")
    settings = {"isolation": Isolation.NONE} if isolation else {}
    bench = LocalBench(tmp_path, settings)
    yield bench, how.upper()
    bench.close()


def test_every_point_is_in_the_code_and_every_one_in_the_code_is_known() -> None:
    used = {
        name for path in SOURCES.glob("*.py") for name in re.findall(r'fault\("([^"]+)"\)', path.read_text())
    }
    assert used == set(MINE)


@pytest.mark.parametrize("point", MINE)
def test_killed_or_frozen_at_any_point(hit: tuple[LocalBench, str], point: str, tmp_path: Path) -> None:
    bench, how = hit
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / point).write_text(how)
    submission = _submission(bench)
    submitter = bench.submit_in_another_process(submission, faults)
    handle = Handle(submission.key)
    if point == "local.stop_written":
        submitter.answer()
        wait_for(lambda: _is_over(bench, handle, "short") and log_of(bench.backend, handle))
        _stop_in_another_process(bench, handle, faults)
    wait_for(lambda: list(faults.glob("*.taken.*")), 20)

    seen = wait_for(lambda: _again(bench, submission, handle), 20, interval=0.1)

    submitter.end()
    _check_the_end(bench, handle, seen, point, how)


def _submission(bench: LocalBench) -> Submission:
    """Passes every point: the short one succeeds, the worker is warned and then ended by the time limit."""
    return bench.submission(
        role("exit 0", name="short", completion=CompletionPolicy(min_failed=1)),
        role(WORKER.format(judge=bench.judge), completion=CompletionPolicy(min_failed=1)),
        time_limit_s=1,
        end_signal=EndSignal(signal="USR1", seconds_before=1),
        grace_s=1,
    )


def _is_over(bench: LocalBench, handle: Handle, name: str) -> bool:
    seen = bench.backend.observe([handle])[handle]
    return isinstance(seen, Observation) and replica(seen, name).state in TASK_TERMINAL


def _stop_in_another_process(bench: LocalBench, handle: Handle, faults: Path) -> None:
    """A child that stops the attempt and is hit on the way."""
    pid = os.fork()
    if pid == 0:
        faults_module.FOLDER = str(faults)  # type: ignore[misc]
        bench.backend.stop(handle, grace_s=1, signal="TERM")
        os._exit(0)
    wait_for(lambda: list(faults.glob("*.taken.*")))
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)


def _again(bench: LocalBench, submission: Submission, handle: Handle) -> Observation | None:
    """What a console does after a crash: ask, submit again if nothing is known, look; thaw what is frozen."""
    _thaw(bench.processes("jc-wrapper"))
    if not bench.backend.find([submission.key])[submission.key]:
        try:
            bench.backend.submit(submission)
        except Exception:  # noqa: BLE001 another submitter is frozen, holding the lock
            _thaw(_submitters(bench))
            return None
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return seen if seen.state in TERMINAL else None


def _thaw(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _submitters(bench: LocalBench) -> list[int]:
    return [pid for pid in bench.processes() if "submitter" in Path(f"/proc/{pid}/cmdline").read_text()]


def _check_the_end(bench: LocalBench, handle: Handle, seen: Observation, point: str, how: str) -> None:
    worker = replica(seen)
    starts = _lines(bench.judge / "starts")
    assert len(starts) <= 1, "it ran twice"
    lost = point in ("wrapper.claimed", "wrapper.running", "wrapper.ended") and how == "KILL"
    if not lost:
        stopped = point == "local.stop_written"
        assert seen.reason.code is (ReasonCode.USER_STOP if stopped else ReasonCode.TIME_LIMIT)
        assert seen.state is State.STOPPED
        assert replica(seen, "short").state is TaskState.SUCCEEDED
        assert worker.state is TaskState.STOPPED
        assert starts == ["started"]
    else:
        one = (
            worker
            if worker.reason and worker.reason.code is ReasonCode.WRAPPER_LOST
            else replica(seen, "short")
        )
        assert one.reason is not None
        assert (one.state, one.reason.code) == (TaskState.FAILED, ReasonCode.WRAPPER_LOST)
        assert seen.state is State.FAILED
    _check_the_log(bench, handle)
    _check_nothing_is_left(bench, handle)


def _check_the_log(bench: LocalBench, handle: Handle) -> None:
    """The replica writes each line to its output first and then to the judge."""
    output = [line for line in log_of(bench.backend, handle).splitlines() if line.startswith("line")]
    told = _lines(bench.judge / "lines")
    assert output[: len(told)] == told
    assert len(output) - len(told) in (0, 1)


def _check_nothing_is_left(bench: LocalBench, handle: Handle) -> None:
    wait_for(lambda: not bench.processes(), 5)
    attempt = bench.attempt(handle)
    assert not (attempt / "secrets.json").exists()
    wait_for(lambda: not list((bench.config.root / ".live").iterdir()), 2)
    places = cgroups.usable()
    if places is not None:
        assert not [path for path in places.folders("") for path in path.glob(f"{handle}*")]
    assert (attempt / "supervisor.log").read_text() == ""


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
