"""Killed anywhere while a sweep runs, or a job waits for another: none is lost, none runs twice."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import httpx
import pytest

from tests.kill.conftest import Arena
from tests.kill.test_killed_anywhere import ended
from tests.waiting import wait_for

pytestmark = pytest.mark.kill

JOBS: Final = 6
AT_ONCE: Final = 2
ON_THE_WAY: Final = (
    "accept.before_commit",
    "accept.after_commit",
    "admit.before_commit",
    "submit.leased",
    "submit.before_engine",
    "submit.after_engine",
    "observe.before_apply",
    "observe.before_commit",
)
"""Whoever passes one of these first is killed there: all of them in the life of one group."""


def post(arena: Arena, path: str, body: Mapping[str, Any] | None = None, key: str = "") -> dict[str, Any]:
    """Send until the console answers, as a client may that knows nothing of its first try."""

    def sent() -> dict[str, Any] | None:
        try:
            with arena.api() as api:
                headers = {"Idempotency-Key": key} if key else {}
                answer = api.post(path, json=body, headers=headers)
        except httpx.HTTPError:
            return None
        assert answer.status_code in {200, 201, 202, 500, 502, 503}, answer.text
        return dict(answer.json()) if answer.is_success else None

    return wait_for(sent, 60)


def file(name: str, command: str, after: list[dict[str, str]] | None = None) -> str:
    """A job file in PAI-DLC's words."""
    role = {"Type": "Worker", "Image": "any", "PodCount": 1, "ResourceConfig": {"CPU": "1", "Memory": "1Gi"}}
    ours = {"JobConsole": {"after": after}} if after else {}
    said = {"DisplayName": name, "JobType": "PyTorchJob", "JobSpecs": [role], "UserCommand": command}
    return json.dumps(said | ours)


def runs(arena: Arena, sweep: str) -> list[dict[str, Any]]:
    """The jobs of the sweep; none while the console does not answer."""
    try:
        with arena.api() as api:
            answer = api.get(f"sweeps/{sweep}")
    except httpx.HTTPError:
        return []
    return list(answer.json()["runs"]) if answer.is_success else []


def all_are(arena: Arena, sweep: str, *states: str) -> bool:
    """Whether every job of the sweep has one of these states."""
    found = runs(arena, sweep)
    return bool(found) and all(run["job"]["state"] in states for run in found)


def arm(arena: Arena, *points: str) -> None:
    for point in points:
        arena.arm(point, "KILL")


def test_sweep_after_kills_is_accepted_once_and_runs_each_job_once(arena: Arena) -> None:
    told = arena.judge / "swept"
    command = f"echo +{{n}} >> {told}; sleep 0.5; echo -{{n}} >> {told}"
    body = {"file": file("swept", command), "grid": {"n": [*range(JOBS)]}, "at_once": AT_ONCE}
    arm(arena, *ON_THE_WAY)
    sweep = post(arena, "sweeps", body, key="swept")["id"]
    wait_for(lambda: all_are(arena, sweep, "SUCCEEDED"), 120)
    assert all(arena.taken(point) for point in ON_THE_WAY)
    lines = told.read_text().split()
    assert sorted(lines) == sorted(f"{sign}{n}" for sign in "+-" for n in range(JOBS))
    under_way = itertools.accumulate(1 if line[0] == "+" else -1 for line in lines)
    assert max(under_way) <= AT_ONCE
    with arena.api() as api:
        names = [job["name"] for job in api.get("jobs").json()["jobs"]]
    assert sorted(name for name in names if name.startswith("swept-")) == [
        f"swept-{n}" for n in range(1, JOBS + 1)
    ]


def test_sweep_rerun_after_kill_runs_failed_jobs_exactly_once_more(arena: Arena) -> None:
    told, fixed = arena.judge / "again", arena.judge / "mended"
    command = f"echo {{n}} >> {told}; test {{n}} = 0 || test -e {fixed}"
    sweep = post(arena, "sweeps", {"file": file("again", command), "grid": {"n": [0, 1, 2]}}, key="again")[
        "id"
    ]
    wait_for(lambda: all_are(arena, sweep, "SUCCEEDED", "FAILED"), 60)
    fixed.touch()
    arm(arena, "accept.before_commit")
    post(arena, f"sweeps/{sweep}/again")
    post(arena, f"sweeps/{sweep}/again")
    wait_for(lambda: all_are(arena, sweep, "SUCCEEDED"), 60)
    assert arena.taken("accept.before_commit")
    assert sorted(told.read_text().split()) == ["0", "1", "1", "2", "2"]


def test_sweep_stop_interrupted_by_kills_is_completed(arena: Arena) -> None:
    told = arena.judge / "stopped"
    body = {"file": file("stopped", f"echo {{n}} >> {told}; exec sleep 600"), "grid": {"n": [0, 1, 2]}}
    sweep = post(arena, "sweeps", body | {"at_once": 1}, key="stopped")["id"]
    wait_for(told.exists, 60)
    arm(arena, "sweep.stopping", "stop.before_engine", "stop.after_engine")
    post(arena, f"sweeps/{sweep}/stop")
    wait_for(lambda: all_are(arena, sweep, "STOPPED"), 60)
    assert arena.taken("sweep.stopping")
    assert told.read_text().split() == ["0"]


def test_dependent_job_after_kills_starts_once_or_stops_with_reason(arena: Arena) -> None:
    told, go = arena.judge / "chained", arena.judge / "go"
    wait = f"echo parent >> {told}; while ! test -e {go}; do sleep 0.1; done"
    arm(arena, *ON_THE_WAY, "dependencies.before_commit")
    parent = post(arena, "jobs", {"file": file("parent", wait)}, key="parent")["id"]
    children = {}
    for when in ("succeeded", "failed"):
        after = [{"job": parent, "when": when}]
        text = file(when, f"echo {when} >> {told}", after)
        children[when] = post(arena, "jobs", {"file": text}, key=when)["id"]
    wait_for(told.exists, 60)
    go.touch()
    jobs = {when: wait_for(partial(ended, arena, child), 90) for when, child in children.items()}
    assert (jobs["succeeded"]["state"], jobs["failed"]["state"]) == ("SUCCEEDED", "STOPPED")
    assert jobs["failed"]["reason"]["code"] == "after_never"
    assert told.read_text().split() == ["parent", "succeeded"]
    assert all(arena.taken(point) for point in (*ON_THE_WAY, "dependencies.before_commit"))


def test_sweep_turn_lost_to_a_kill_is_given_later(arena: Arena) -> None:
    told = arena.judge / "turns"
    body = {"file": file("turns", f"echo {{n}} >> {told}; sleep 0.2"), "grid": {"n": [0, 1, 2]}, "at_once": 1}
    arm(arena, "turns.before_commit")
    sweep = post(arena, "sweeps", body, key="turns")["id"]
    wait_for(lambda: all_are(arena, sweep, "SUCCEEDED"), 90)
    assert arena.taken("turns.before_commit")
    assert told.read_text().split() == ["0", "1", "2"]
