"""Killed or frozen anywhere: nothing is lost, nothing runs twice, nothing is left behind.

The judge is a file outside the console to which each start of a replica appends a line.
"""

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.home import CHECKOUT
from jobs import faults as faults_module
from jobs.backends.base import Handle, Observation, Submission
from jobs.faults import POINTS
from jobs.node.sandbox.folders import SharedFolderRule
from jobs.node.sandbox.isolation import Isolation
from jobs.node.wrapper import cgroups
from jobs.spec import (
    CodeSource,
    CompletionPolicy,
    EndSignal,
    Mount,
    MountPurpose,
    PodContainer,
    Requirements,
    Resources,
)
from jobs.states import REPLICA_TERMINAL, TERMINAL, ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import SMALL, LocalBench, log_of, replica, role, wait_until_over
from tests.jobs.backends.local.goods import repository, wheel
from tests.waiting import wait_for

pytestmark = pytest.mark.kill

SOURCES = (CHECKOUT / "jobs/backends/local", CHECKOUT / "jobs/node")
MINE = [point for point in POINTS if point.split(".")[0] in ("local", "agent", "network", "wrapper")]
RESTARTS = ("agent.before_restart", "agent.after_restart")
"""Of attempts with failed replicas that are started again (`test_replica_restarts`)."""

NETWORK = [point for point in MINE if point.startswith("network.")]

ROOM = Resources(cpu_milli=2000, memory_mib=512)
AFTER_THE_START = ("wrapper.claimed", "wrapper.running", "wrapper.ended", "wrapper.logged")
PREPARING = ("wrapper.copied", "wrapper.fetched", "wrapper.installed")
INIT = "wrapper.init_ended"

WORKER = """
echo started >> {judge}/starts
trap 'echo warned; echo warned >> {judge}/warned' USR1
i=0
while [ $i -lt 4000 ]; do i=$((i+1)); echo line $i; echo line $i >> {judge}/lines; sleep 0.01; done
"""


@pytest.fixture(params=["kill", "stop", "kill-none"])
def hit(
    request: pytest.FixtureRequest, tmp_path: Path, place: Path
) -> Iterator[tuple[LocalBench, str, Path]]:
    how, _, isolation = request.param.partition("-")
    settings: dict[str, Any] = {
        "folders": (SharedFolderRule.from_settings(str(place), {"workspaces": ["*"]}),)
    }
    if isolation:
        settings["isolation"] = Isolation.NONE
    bench = LocalBench(tmp_path, settings)
    yield bench, how.upper(), place
    bench.close()


def test_fault_points_in_code_match_known_list() -> None:
    used = {
        name
        for folder in SOURCES
        for path in folder.rglob("*.py")
        for name in re.findall(r'fault\("([^"]+)"\)', path.read_text())
    }
    assert used == set(MINE)


CASES = [
    (how, point)
    for number, point in enumerate(point for point in MINE if point not in (*NETWORK, *RESTARTS))
    for how in ("kill", ("stop", "kill-none")[number % 2])
]
"""A kill at each point, and at each one of the two other ways: all three take twice as long."""


@pytest.mark.parametrize(("hit", "point"), CASES, indirect=["hit"])
def test_attempt_survives_kill_or_pause_at_any_fault_point(
    hit: tuple[LocalBench, str, Path], point: str, tmp_path: Path
) -> None:
    _survive(hit, point, tmp_path)


@pytest.mark.parametrize("hit", ["kill", "stop"], indirect=True)
@pytest.mark.parametrize("point", NETWORK)
def test_attempt_survives_kill_or_pause_while_its_network_is_made(
    hit: tuple[LocalBench, str, Path], point: str, tmp_path: Path
) -> None:
    bench, _how, _place = hit
    if not bench.config.has_own_network(bench.backend.isolation()):
        pytest.skip("jobs have no networks of their own")
    _survive(hit, point, tmp_path)


def _survive(hit: tuple[LocalBench, str, Path], point: str, tmp_path: Path) -> None:
    bench, how, place = hit
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / point).write_text(how)
    submission = _submission(bench, place if point in PREPARING else None, has_init=point == INIT)
    if point == "local.stop_written":  # nothing else is to end it before
        longer = submission.spec.model_copy(update={"time_limit_s": 600})
        submission = replace(submission, spec=longer)
    submitter = bench.submit_in_another_process(submission, faults)
    handle = Handle(submission.key)
    if point == "local.stop_written":
        submitter.answer()
        wait_for(lambda: _is_over(bench, handle, "short") and log_of(bench.backend, handle))
        _stop_in_another_process(bench, handle, faults)
    wait_for(lambda: list(faults.glob("*.taken.*")))

    seen = wait_for(lambda: _again(bench, submission, handle), interval=0.1)

    submitter.end()
    _check_the_end(bench, handle, seen, point, how)


def _submission(bench: LocalBench, place: Path | None, *, has_init: bool = False) -> Submission:
    """Passes every point: the short one succeeds, the worker is warned and then ended by the time limit.

    With `has_init` the worker has an init container.  With a `place` code is copied and fetched from there,
    and a package installed, before that.
    """
    prepared: dict[str, Any] = {}
    if place is not None:
        repository(place / "repo")
        wheel(place / "sets")
        code_dir = Mount(uri=f"file://{place}/sets", purpose=MountPurpose.CODE, read_only=True)
        prepared = {
            "mounts": (code_dir,),
            "code": CodeSource(uri=f"file://{place}/repo", branch="old"),
            "requirements": Requirements(packages=("tiny",)),
            "env": {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "sets"},
        }
    enough = ROOM if prepared else SMALL
    policy = CompletionPolicy(min_failed=1)
    noted = ("sh", "-c", f"echo started >>{bench.judge}/inits")
    init = (PodContainer(name="init", command=noted),) if has_init else ()
    return bench.submission(
        role("exit 0", name="short", completion=policy, resources=enough),
        role(WORKER.format(judge=bench.judge), completion=policy, resources=enough, init_containers=init),
        time_limit_s=20 if prepared else 1,
        end_signal=EndSignal(signal="USR1", seconds_before=1),
        grace_s=1,
        **prepared,
    )


def _is_over(bench: LocalBench, handle: Handle, name: str) -> bool:
    seen = bench.backend.observe([handle])[handle]
    return isinstance(seen, Observation) and replica(seen, name).state in REPLICA_TERMINAL


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
            for submitter in bench.submitters:
                submitter.thaw()
            return None
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return seen if seen.state in TERMINAL else None


def _thaw(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _check_the_end(bench: LocalBench, handle: Handle, seen: Observation, point: str, how: str) -> None:
    worker = replica(seen)
    starts = _lines(bench.judge / "starts")
    assert len(starts) <= 1, "it ran twice"
    assert _lines(bench.judge / "inits") == ["started"] * (point == INIT)
    lost = how == "KILL" and point in AFTER_THE_START
    if not lost:
        stopped = point == "local.stop_written"
        assert seen.reason.code is (ReasonCode.USER_STOP if stopped else ReasonCode.TIME_LIMIT)
        assert seen.state is State.STOPPED
        assert replica(seen, "short").state is ReplicaState.SUCCEEDED
        assert worker.state is ReplicaState.STOPPED
        assert starts == ["started"]
    else:
        one = (
            worker
            if worker.reason and worker.reason.code is ReasonCode.WRAPPER_LOST
            else replica(seen, "short")
        )
        assert one.reason is not None
        assert (one.state, one.reason.code) == (ReplicaState.FAILED, ReasonCode.WRAPPER_LOST)
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
    wait_for(lambda: not bench.processes())
    attempt = bench.attempt(handle)
    assert not (attempt / "secrets.json").exists()
    wait_for(lambda: not list((bench.config.root / ".live").iterdir()))
    places = cgroups.usable()
    if places is not None:
        assert not [path for path in places.folders("") for path in path.glob(f"{handle}*")]
    assert (attempt / "supervisor.log").read_text() == ""


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_second_wrapper_leaves_preparation_of_first_untouched(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is held up before its command while nobody knows of it; another is sent meanwhile."""
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "wrapper.copied").write_text("STOP")
    monkeypatch.setenv("CONSOLE_FAULTS", str(faults))
    bench = LocalBench(
        tmp_path, {"folders": (SharedFolderRule.from_settings(str(place), {"workspaces": ["*"]}),)}
    )
    code_dir = Mount(uri=f"file://{place}/sets", purpose=MountPurpose.CODE, read_only=True)
    command = f"echo started >> {bench.judge}/starts; echo mine > file; sleep 2; cat file sets/file"
    handle = bench.backend.submit(bench.submission(role(command), mounts=(code_dir,)))
    wait_for(lambda: list(faults.glob("*.taken.*")))
    first = bench.processes("jc-wrapper")
    bench.restart_controller()
    replica_folder = bench.attempt(handle) / "replicas" / "worker-0"
    (replica_folder / "wrapper.json").unlink()
    os.truncate(replica_folder / "turn", 0)

    def sent_again() -> bool:
        bench.backend.observe([handle])
        return len(bench.processes("jc-wrapper")) > len(first)

    wait_for(sent_again)
    _thaw(first)
    seen = wait_until_over(bench.backend, handle)
    assert seen.state is State.SUCCEEDED
    assert log_of(bench.backend, handle) == "mine\nof the set\n"
    assert _lines(bench.judge / "starts") == ["started"]
    _check_nothing_is_left(bench, handle)
    bench.close()
