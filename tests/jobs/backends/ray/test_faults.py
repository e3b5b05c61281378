"""Faults on a real Ray: lost answers, and processes that are killed."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import httpx
import pytest

from jobs.backends.base import Handle, NotSubmitted, Unknown, Unreachable
from jobs.backends.ray.backend import RayBackend
from jobs.backends.ray.client import RayClient
from jobs.backends.ray.config import RayConfig
from jobs.backends.remote import node_addresses
from jobs.spec import NodeChoice
from jobs.states import ReasonCode, ReplicaState, State
from tests.jobs.backends.benches import all_pids, log_of, replica, role, text_of, wait_until_over
from tests.jobs.backends.beside import run
from tests.jobs.backends.ray_bench import RayBench
from tests.ray_cluster import NODES
from tests.waiting import wait_for

pytestmark = pytest.mark.ray


def submit(bench: RayBench, command: str = "echo up; exec sleep 600", **more: Any) -> Handle:
    """A job that has said something."""
    handle = bench.backend.submit(bench.submission(role(command, **more)))
    wait_for(lambda: log_of(bench.backend, handle))
    return handle


def find_driver(handle: Handle) -> int:
    """The process of a job's driver."""
    found = [pid for pid in all_pids() if f"/courier/{handle}" in text_of(pid, "cmdline")]
    return next(pid for pid in found if "run_job.py" in text_of(pid, "cmdline"))


def test_answer_lost_after_accept_is_found_and_adopted(
    on_ray: RayBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = on_ray.submission(role("echo once"))
    ask = httpx.Client.request

    def lose(self: httpx.Client, method: str, url: Any, **more: Any) -> httpx.Response:
        answer = ask(self, method, url, **more)
        if method == "POST":
            raise httpx.ReadTimeout("lost")
        return answer

    monkeypatch.setattr(httpx.Client, "request", lose)
    with pytest.raises(Unknown):
        on_ray.backend.submit(submission)
    monkeypatch.undo()
    assert on_ray.backend.find([submission.key]) == {submission.key: [submission.key]}
    handle = on_ray.backend.submit(submission)
    assert wait_until_over(on_ray.backend, handle).state is State.SUCCEEDED
    assert log_of(on_ray.backend, handle) == "once\n"


def test_job_of_others_with_same_id_is_not_adopted(on_ray: RayBench) -> None:
    submission = on_ray.submission()
    RayClient(on_ray.config).submit({"submission_id": submission.key, "entrypoint": "true"})
    with pytest.raises(Unknown):
        on_ray.backend.submit(submission)


def test_unreachable_dashboard_submits_nothing_and_wrong_token_is_no_answer(on_ray: RayBench) -> None:
    away = RayBackend(RayConfig.from_settings(on_ray.folder, {**on_ray.told, "url": "http://127.0.0.1:9"}))
    submission = on_ray.submission()
    with pytest.raises(NotSubmitted) as not_sent:
        away.submit(submission)
    assert not_sent.value.reason.code is ReasonCode.NOT_SENT
    with pytest.raises(Unreachable):
        away.observe([Handle(submission.key)])
    assert on_ray.backend.find([submission.key])[submission.key] == []
    stranger = RayBackend(RayConfig.from_settings(on_ray.folder, {**on_ray.told, "token": "another"}))
    with pytest.raises(Unreachable):
        stranger.inventory()


def test_killed_driver_ends_its_replicas_and_fails_the_job(on_ray: RayBench) -> None:
    handle = submit(on_ray)
    os.kill(find_driver(handle), signal.SIGKILL)
    wait_for(lambda: not on_ray.processes("sleep"))
    seen = wait_until_over(on_ray.backend, handle)
    assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.WRAPPER_LOST)
    assert replica(seen).state is ReplicaState.FAILED


def test_killed_runner_is_replaced_and_its_replica_goes_on(on_ray: RayBench) -> None:
    go = on_ray.judge / "go"
    handle = submit(on_ray, f"echo up; until [ -e {go} ]; do sleep 0.1; done; exit 5")
    for pid in on_ray.processes("jc-runner"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: on_ray.processes("jc-runner"))
    go.touch()
    seen = wait_until_over(on_ray.backend, handle)
    assert replica(seen).exit_code == 5
    assert log_of(on_ray.backend, handle) == "up\n"


def test_killed_node_ends_its_replicas_with_a_reason(on_ray: RayBench) -> None:
    handle = submit(on_ray, nodes=NodeChoice(only=("ampere",)))
    on_ray.cluster.kill_node("ampere")
    try:
        seen = wait_until_over(on_ray.backend, handle)
        assert (seen.state, seen.reason.code) == (State.FAILED, ReasonCode.NODE_LOST)
        assert seen.reason.params["node"] == "ampere"
        assert [node.name for node in on_ray.backend.inventory().nodes if node.gpus] == ["titans"]
        wait_for(lambda: not on_ray.processes("sleep"))
    finally:
        on_ray.cluster.start_node("ampere")


def test_head_that_restarts_has_forgotten_its_jobs(on_ray: RayBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Away it tells nothing; back it knows no job, and replicas have ended with their driver.

    Its nodes have their names again, and other ids: replicas on them are entered as before.
    """
    handle = submit(on_ray)
    assert asyncio.run(run(on_ray, handle, "echo here"))[0] == "here\n"
    on_ray.cluster.kill_head()
    try:
        with pytest.raises(Unreachable):
            on_ray.backend.observe([handle])
        wait_for(lambda: not on_ray.processes("sleep"))
    finally:
        on_ray.cluster.restart()
    assert set(on_ray.cluster.living()) >= set(NODES)
    found = wait_until_over(on_ray.backend, handle)
    assert (found.state, replica(found).state) == (State.FAILED, ReplicaState.FAILED)
    monkeypatch.setattr(node_addresses, "RETRY_S", 0.0)  # which are long over where a person restarts a head
    assert asyncio.run(run(on_ray, submit(on_ray), "echo here"))[0] == "here\n"
