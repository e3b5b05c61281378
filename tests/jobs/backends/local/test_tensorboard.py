"""TensorBoard beside a real local job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.backends.base import Handle, Observation, Refused, ReplicaRef
from jobs.node.sandbox.isolation import Isolation
from jobs.node.wrapper import cgroups
from jobs.spec import TensorBoard
from jobs.states import PortSource, State
from tests.jobs.backends import curves
from tests.jobs.backends.benches import LocalBench, log_of, replica, role, wait_until_over
from tests.jobs.backends.local.images import IMAGE, import_image, list_containers
from tests.waiting import wait_for

PROGRAM = "#!/bin/sh\ntrap '' TERM\necho \"$@\" >begun\nsleep 600 & wait; wait\n"


def find_endpoint(bench: LocalBench, handle: Handle) -> Any:
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    found = [each for one in seen.replicas for each in one.endpoints if each.label == "tensorboard"]
    return found[0] if found and found[0].ready else None


def wait_for_text(path: Path) -> str:
    return wait_for(lambda: path.read_text() if path.exists() else "")


def fetch_tags(bench: LocalBench, handle: Handle, name: str) -> dict[str, Any]:
    endpoint = wait_for(lambda: find_endpoint(bench, handle), 60)
    assert (endpoint.source, endpoint.path) == (PortSource.ANNOUNCED, "/")

    def fetch() -> dict[str, Any]:
        reached = bench.backend.connect(handle, ReplicaRef(name, 0), "localhost", endpoint.port)
        return curves.fetch_tags(asyncio.run(reached))

    return wait_for(fetch)


def test_tensorboard_shows_what_a_job_logs_and_ends_with_it(local: LocalBench) -> None:
    """The console's own, beside rank 0, under a job that runs on when the agent is killed."""
    curves.write_curve(local.judge / "run")
    logs = (
        f'echo $AIHC_TENSORBOARD_LOG_PATH; mkdir -p $AIHC_TENSORBOARD_LOG_PATH; cp -r {local.judge}/run "$_"'
    )
    waits = f"until [ -e {local.judge}/go ]; do sleep 0.1; done"
    roles = (role("true"), role(f"{logs}\n{waits}", name="Master"))
    submission = local.submission(*roles, tensorboard=TensorBoard(log_path="/logs/tb"))
    handle = local.backend.submit(submission)
    tags = {"run": {curves.TAG: {"displayName": "", "description": ""}}}
    assert fetch_tags(local, handle, "Master") == tags
    running, agents = local.processes("python"), set(local.agents())
    local.restart_controller()
    wait_for(lambda: find_endpoint(local, handle) and set(local.agents()) - agents)
    assert fetch_tags(local, handle, "Master") == tags
    assert local.processes("python") == running
    (local.judge / "go").touch()
    seen = wait_until_over(local.backend, handle)
    assert seen.state is State.SUCCEEDED
    assert [(one.role, one.index, one.exit_code) for one in seen.replicas] == [
        ("worker", 0, 0),
        ("Master", 0, 0),
    ]
    assert log_of(local.backend, handle, "Master") == "/logs/tb\n"
    wait_for(lambda: not local.processes())
    if places := cgroups.usable():
        assert not [path for folder in places.folders("") for path in folder.glob(f"{handle}*")]


def test_tensorboard_of_job_is_preferred_and_does_not_delay_a_stop(
    bench_of: Callable[..., LocalBench],
) -> None:
    bench = bench_of(isolation=Isolation.NONE, limits="watchdog")
    program = bench.judge / "tensorboard"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    job = role("sleep 600", env={"PATH": f"{bench.judge}:/usr/bin:/bin"})
    handle = bench.backend.submit(bench.submission(job, tensorboard=TensorBoard()))
    work = bench.attempt(handle) / "work/worker-0"
    begun = wait_for_text(work / "begun")
    assert begun.startswith(f"--logdir {work}/tensorboard --host 127.0.0.1 --port ")
    bench.backend.stop(handle, grace_s=600, signal="TERM")
    seen = wait_until_over(bench.backend, handle, 20)
    assert (seen.state, replica(seen).signal) == (State.STOPPED, 15)
    wait_for(lambda: not bench.processes())


def test_tensorboard_log_folder_over_system_folder_is_refused(local: LocalBench) -> None:
    with pytest.raises(Refused) as refused:
        local.backend.submit(local.submission(tensorboard=TensorBoard(log_path="/etc/logs")))
    assert refused.value.reason.params == {"why": "mount_over", "path": "/etc/logs"}


def test_tensorboard_of_console_shows_what_a_container_logs(
    bench_of: Callable[..., LocalBench], store: tuple[str, ...]
) -> None:
    bench = bench_of(engine="podman", engine_options=store)
    job = role("until [ -e go ]; do sleep 0.1; done", image=IMAGE)
    handle = bench.backend.submit(bench.submission(job, tensorboard=TensorBoard()))
    work = bench.attempt(handle) / "work/worker-0"
    wait_for((work / "tensorboard").exists)
    curves.write_curve(work / "tensorboard")
    assert fetch_tags(bench, handle, "worker")["."]
    (work / "go").touch()
    assert wait_until_over(bench.backend, handle).state is State.SUCCEEDED
    wait_for(lambda: not bench.processes())


def test_tensorboard_of_image_runs_in_a_container_of_its_own(
    bench_of: Callable[..., LocalBench], store: tuple[str, ...], tmp_path: Path
) -> None:
    image = import_image(tmp_path / "root", store, "localhost/boards:1", {"tensorboard": PROGRAM})
    bench = bench_of(engine="podman", engine_options=store)
    job = role("trap 'exit 0' TERM; echo begun; while :; do sleep 0.1; done", image=image)
    handle = bench.backend.submit(bench.submission(job, tensorboard=TensorBoard()))
    begun = wait_for_text(bench.attempt(handle) / "work/worker-0/begun")
    assert begun.startswith("--logdir /job/tensorboard --host 127.0.0.1 --port ")
    wait_for(lambda: log_of(bench.backend, handle))
    bench.backend.stop(handle, grace_s=600, signal="TERM")
    assert wait_until_over(bench.backend, handle, 60).state is State.STOPPED
    assert list_containers(bench.config.engine_options) == ""
    assert not list(bench.attempt(handle).glob("replicas/*/env*"))
