"""Killed or frozen at any step, by name: no job lost, none run twice, nothing left behind.

The judge is a file outside the console to which each start of a job appends one line.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import psutil
import pytest

from jobs.faults import POINTS
from tests.kill.conftest import LINES, Arena
from tests.test_architecture import ROOT
from tests.waiting import wait_for

pytestmark = pytest.mark.kill

STOPPED_JOBS = ("stop.", "local.stop_written", "agent.ordered")
"""Points that are passed only when somebody stops the job."""

FAULTS = ("detect.", "stacks.", "decide.", "restart.", "retry.", "sanity.", "cordon.", "metrics.", "route.")
"""Points of jobs with fault tolerance: test_faults_killed.py has them."""

OTHER_JOBS = (
    "release.before_engine",
    *(point for point in POINTS if point.startswith(("slurm.", "ray.", "kubernetes."))),
    "agent.warned",
    "agent.decided",
    "agent.before_restart",
    "agent.after_restart",
    *(point for point in POINTS if point.startswith(FAULTS)),
    "notification.before_send",
    "notification.after_send",
    "forward.before_post",
    "forward.after_post",
    "dependencies.before_commit",
    "turns.before_commit",
    "sweep.stopping",
    "wrapper.init_ended",
    "wrapper.copied",
    "wrapper.fetched",
    "wrapper.installed",
)
"""Passed by jobs with a time limit, of several replicas, or with code and packages: the local backend's
test_killed.py has them; those of notifications need a channel, and test_notifications_killed.py has it; those
of log sinks are in test_forwarder.py; those of sweeps and of jobs that wait for others are in
test_groups_killed.py, and those of the other engines in the contract suite.
"""

TREE_ENDS = ("wrapper.claimed", "wrapper.running", "wrapper.ended", "wrapper.logged")
"""Killing the first process of a replica here ends the replica: nobody can know any more whether its command
had begun, so it is told as killed, and not run again."""

HOLD_SOMETHING = (
    "admit.before_commit",
    "observe.before_commit",
    "local.locked",
    "local.claimed",
    "local.accepted",
    "agent.",
    "network.",
    "wrapper.",
)
"""Whoever is frozen here holds a lock, a transaction or the job itself: the others can only wait."""

EXPECTED = b"".join(b"line %d\n" % i for i in range(1, LINES + 1))


def thaw(point: str, pid: int) -> None:
    """Let whoever fell at `point` go on; a wrapper knows itself as 1, in a namespace of its own.

    The console wakes frozen supervisors itself: such a one may have come to its end.
    """
    if not point.startswith("wrapper."):
        with suppress(psutil.NoSuchProcess):
            psutil.Process(pid).resume()
        return
    for process in psutil.process_iter(["name"]):
        if process.info["name"] == "jc-wrapper":
            process.resume()


AT_THE_DATABASE = (
    "admit.before_commit",
    "submit.leased",
    "submit.after_engine",
    "observe.before_commit",
)
"""Killed here, it is the database that decides what has happened: these are repeated on PostgreSQL."""

PASSED = [point for point in POINTS if point not in OTHER_JOBS]

CASES = [
    *(
        pytest.param(point, "KILL", marks=[pytest.mark.sample] if point in AT_THE_DATABASE else [])
        for point in PASSED
    ),
    *(
        (point, "STOP")
        for number, point in enumerate(PASSED)
        if point.startswith(HOLD_SOMETHING) or number % 2
        if not point.startswith("accept.")  # a frozen web process is a case below
    ),
]
"""Killed at every point; frozen where others then wait for what it holds, and at each second other one."""


@pytest.mark.parametrize(("point", "what"), CASES)
def test_job_survives_kill_or_freeze_at_every_fault_point(arena: Arena, point: str, what: str) -> None:
    name = f"{point}-{what}".replace(".", "-").replace("_", "-").lower()
    arena.arm(point, what)
    public_id = begin(arena, name, point)
    fallen = wait_for(lambda: arena.taken(point))
    if what == "STOP":
        wait_for(lambda: progressed_without(arena, public_id, point))
        thaw(point, fallen)
    job = wait_for(lambda: ended(arena, public_id))
    judge(arena, name, public_id, point, what, job)


def begin(arena: Arena, name: str, point: str) -> str:
    """Submit a job that passes the point."""
    if point.startswith(STOPPED_JOBS):
        public_id = arena.submit(name, tail="exec sleep 600")
        wait_for(lambda: arena.job(public_id).get("state") == "RUNNING")
        with arena.api() as api:
            api.post(f"jobs/{public_id}/stop")
        return public_id
    return arena.submit(name)


def progressed_without(arena: Arena, public_id: str, point: str) -> bool:
    """Whether the rest of the console went on, or could not: leases are taken over after some seconds."""
    job = arena.job(public_id)
    if point.startswith(HOLD_SOMETHING):
        return bool(job)
    return bool(job) and (job["state"] not in {"QUEUED", "SUBMITTING"})


def ended(arena: Arena, public_id: str) -> dict[str, Any] | None:
    job = arena.job(public_id)
    return job if job.get("state") in {"SUCCEEDED", "FAILED", "STOPPED"} else None


def judge(arena: Arena, name: str, public_id: str, point: str, what: str, job: dict[str, Any]) -> None:
    """Run once; ended as it ended; every byte there; nothing left."""
    if what == "KILL" and point in TREE_ENDS:
        assert arena.starts(name) <= 1
        assert job["state"] in {"FAILED", "SUCCEEDED"}
        wait_for(lambda: not left_behind(arena, public_id))
        return
    assert arena.starts(name) == 1
    if point.startswith(STOPPED_JOBS):
        assert job["state"] == "STOPPED"
    else:
        assert job["state"] == "SUCCEEDED"
        assert arena.log(public_id) == EXPECTED
    wait_for(lambda: not left_behind(arena, public_id))


def left_behind(arena: Arena, public_id: str) -> list[int]:
    """Processes that still work for the job."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any(public_id in word for word in process.info["cmdline"] or ())
    ]


PROGRAMS = ("web", "worker-control", "worker-logs", "worker-notices", "beat", "watch", "redis")
STEPS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "accepted": lambda job: "state" in job,
    "running": lambda job: job.get("state") == "RUNNING",
    "ended": lambda job: job.get("state") == "SUCCEEDED",
}


SIGNALS = [
    *((signal.SIGKILL, step) for step in STEPS),
    (signal.SIGSTOP, "running"),
]
"""Who is killed has to be started again, and whatever it had begun is found; who is frozen goes on."""


@pytest.mark.parametrize(("number", "step"), SIGNALS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_job_survives_signal_to_every_program_at_every_step(
    arena: Arena, program: str, step: str, number: signal.Signals
) -> None:
    name = f"{program}-{step}-{number.name}".lower()
    public_id = arena.submit(name)
    wait_for(lambda: STEPS[step](arena.job(public_id)))
    arena.stack.kill(program, number)
    if number is signal.SIGSTOP:
        time.sleep(2)  # it is the length of the freeze that is tested
        arena.stack.kill(program, signal.SIGCONT)
    job = wait_for(lambda: ended(arena, public_id))
    assert job["state"] == "SUCCEEDED"
    assert arena.starts(name) == 1
    assert arena.log(public_id) == EXPECTED
    arena.stack.wait_until("/healthz", 30)


@pytest.mark.parametrize(("number", "step"), SIGNALS)
@pytest.mark.parametrize("name", ["jc-agent", "jc-forkserver"])
def test_job_survives_signal_to_agent_and_fork_server_at_every_step(
    arena: Arena, name: str, step: str, number: signal.Signals
) -> None:
    """Nobody wakes the frozen ones but the console and the agent."""
    job_name = f"{name}-{step}-{number.name}".lower()
    public_id = arena.submit(job_name)
    wait_for(lambda: STEPS[step](arena.job(public_id)))
    for pid in agent_processes(arena, name):
        with suppress(psutil.NoSuchProcess):
            psutil.Process(pid).send_signal(number)
    assert wait_for(lambda: ended(arena, public_id))["state"] == "SUCCEEDED"
    assert arena.starts(job_name) == 1
    assert arena.log(public_id) == EXPECTED


def agent_processes(arena: Arena, name: str) -> list[int]:
    """The agent of this console, or its fork server."""
    root = str(arena.stack.home / "jobs")
    agents = [
        each
        for each in psutil.process_iter(["name", "cmdline"])
        if each.info["name"] == "jc-agent" and root in (each.info["cmdline"] or ())
    ]
    if name == "jc-agent":
        return [each.pid for each in agents]
    return [child.pid for each in agents for child in each.children() if child.name() == name]


def test_redis_flush_loses_no_job(arena: Arena) -> None:
    public_id = arena.submit("redis-empty")
    arena.stack.python("from jobs.live import bus\nbus.client().flushall()\n")
    assert wait_for(lambda: ended(arena, public_id))["state"] == "SUCCEEDED"
    assert arena.starts("redis-empty") == 1


def test_console_crash_during_running_jobs_loses_no_job(arena: Arena) -> None:
    names = [f"crash-{i}" for i in range(5)]
    ids = [arena.submit(name, lines=1500) for name in names]
    wait_for(lambda: arena.job(ids[0]).get("state") == "RUNNING")
    arena.stack.crash()
    arena.stack.start()
    for name, public_id in zip(names, ids, strict=True):
        assert wait_for(partial(ended, arena, public_id), 60)["state"] == "SUCCEEDED"
        assert arena.starts(name) == 1


def test_fault_points_in_code_match_the_known_points() -> None:
    text = "".join(path.read_text() for path in (ROOT / "jobs").rglob("*.py"))
    assert set(re.findall(r'(?<![\w.])fault\("([^"]+)"\)', text)) == set(POINTS)
