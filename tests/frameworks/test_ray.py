"""Ray jobs with the real Ray: head, worker, driver, and the dashboard as an endpoint."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Final

import pytest

from jobs.backends.base import EndpointSeen, Handle, Observation, ReplicaRef
from jobs.backends.sessions import Enterable
from jobs.spec import Framework, Resources, RoleSpec, Software
from jobs.states import State
from tests.clients import environments
from tests.jobs.backends.benches import (
    Bench,
    LocalBench,
    all_pids,
    log_of,
    replica,
    role,
    text_of,
    wait_until_over,
)
from tests.waiting import wait_for

TOKEN: Final = "the-token-of-this-attempt"
START_S: Final = 180.0
SETTINGS: Final = {"RayObjectStoreMemoryBytes": "80000000"}
DRIVER: Final = """
import os, pathlib, ray, beside
ray.init()
judge = pathlib.Path(os.environ["JUDGE"])

@ray.remote
def look():
    return os.environ["FOO"], ray.get_runtime_context().get_node_id()

found = ray.get([look.options(resources={role: 1}).remote() for role in ("Head", "Worker")])
stores = {int(node["Resources"]["object_store_memory"]) for node in ray.nodes()}
print("seen", len(ray.nodes()), len({node for _, node in found}), [foo for foo, _ in found], stores)
print("driver", os.environ["FOO"], beside.NAME, int(ray.cluster_resources()["CPU"]), flush=True)
(judge / "ready").touch()
while not (judge / "go").exists():
    __import__("time").sleep(0.1)
"""


@pytest.fixture(scope="module")
def environment() -> Path:
    """Return the folder of an environment with Ray, whose Python every user can run."""
    return environments.python("ray", Path(__file__).parent, "/usr/bin/python3").parents[1].resolve()


def ray_role(name: str, command: str) -> RoleSpec:
    """A role of one replica."""
    return role(command, name=name, resources=Resources(cpu_milli=1000, memory_mib=2048, shm_mib=64))


def submit(bench: Bench, environment: Path, command: str, *names: str, **options: str) -> Handle:
    """Submit a Ray job."""
    submission = bench.submission(
        *(ray_role(name, command) for name in names),
        framework=Framework.RAY,
        framework_options={**SETTINGS, **options},
        software=Software(venv=str(environment)),
        env={"FOO": "1", "JUDGE": str(bench.judge)},
        endpoint_token=TOKEN,
    )
    return bench.backend.submit(submission)


def observe(bench: Bench, handle: Handle) -> Observation:
    seen = bench.backend.observe([handle])[handle]
    assert isinstance(seen, Observation)
    return seen


def wait_for_file(bench: Bench, handle: Handle, name: str) -> None:
    """Wait for a file of the job's; it ends too early where there will be none."""

    def is_there() -> bool:
        assert observe(bench, handle).state is not State.FAILED, log_of(bench.backend, handle, "Head")
        return (bench.judge / name).exists()

    wait_for(is_there, START_S)


def ask(bench: Bench, handle: Handle, endpoint: EndpointSeen, cookie: str) -> bytes:
    """Return the dashboard's answer, by the connection that the gateway makes."""

    async def connect() -> socket.socket:
        assert isinstance(bench.backend, Enterable)
        return await bench.backend.connect(handle, ReplicaRef("Head", 0), endpoint.host, endpoint.port)

    with asyncio.run(connect()) as opened:
        opened.settimeout(20)
        head = f"GET /api/jobs/ HTTP/1.1\r\nHost: ray\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        opened.sendall(head.encode())
        return b"".join(iter(lambda: opened.recv(65536), b""))


def list_ray_processes(environment: Path) -> list[int]:
    """Every process that has loaded something of this Ray."""
    return [pid for pid in all_pids() if f"{environment}/lib" in text_of(pid, "maps")]


def test_ray_driver_spans_replicas_in_runtime_env_and_serves_dashboard(
    bench: Bench, environment: Path
) -> None:
    code = bench.judge / "code"
    code.mkdir(mode=0o755)
    (code / "beside.py").write_text("NAME = 'of the working directory'\n")
    (code / "driver.py").write_text(DRIVER)
    runtime_env = json.dumps({"env_vars": {"FOO": "2"}, "working_dir": str(code)})
    handle = submit(bench, environment, "python driver.py", "Head", "Worker", RayRuntimeEnv=runtime_env)
    wait_for_file(bench, handle, "ready")

    def served() -> EndpointSeen | None:
        found = replica(observe(bench, handle), "Head").endpoints
        return next((each for each in found if each.label == "ray-dashboard" and each.ready), None)

    dashboard = wait_for(served, 60)
    assert dashboard is not None
    assert dashboard.token == "ray-authentication-token"
    assert ask(bench, handle, dashboard, "").startswith(b"HTTP/1.1 401")
    answer = ask(bench, handle, dashboard, f"ray-authentication-token={TOKEN}")
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"RUNNING"' in answer
    (bench.judge / "go").touch()
    seen = wait_until_over(bench.backend, handle)
    log = log_of(bench.backend, handle, "Head")
    assert seen.state is State.SUCCEEDED, log
    assert {each.exit_code for each in seen.replicas} == {0}
    assert "seen 2 2 ['2', '2'] {80000000}" in log
    assert "driver 2 of the working directory 2" in log
    assert TOKEN not in log
    wait_for(lambda: not list_ray_processes(environment), 20)


def test_stopped_ray_job_leaves_no_process(bench: Bench, environment: Path) -> None:
    """Its driver uses the grace period, for longer than Ray's own processes would stay."""
    command = (
        'trap "sleep 8; touch $JUDGE/trapped; exit" TERM; touch "$JUDGE/ready"; while sleep 0.1; do :; done'
    )
    handle = submit(bench, environment, command, "Head", "Worker")
    wait_for_file(bench, handle, "ready")
    assert list_ray_processes(environment)
    bench.backend.stop(handle, grace_s=20, signal="TERM")
    assert wait_until_over(bench.backend, handle).state is State.STOPPED
    assert not list_ray_processes(environment)
    assert (bench.judge / "trapped").exists()


def test_failed_ray_driver_fails_job_with_its_exit_code(local: LocalBench, environment: Path) -> None:
    handle = submit(local, environment, "exit 3", "Head")
    seen = wait_until_over(local.backend, handle, START_S)
    log = log_of(local.backend, handle, "Head")
    assert seen.reason.params == {"role": "Head", "index": 0, "exit_code": 3}, log


def test_ray_job_without_ray_fails_with_sentence(local: LocalBench, tmp_path: Path) -> None:
    handle = local.backend.submit(local.submission(ray_role("Head", "true"), framework=Framework.RAY))
    seen = wait_until_over(local.backend, handle)
    log = log_of(local.backend, handle, "Head")
    assert seen.reason.params["exit_code"] == 127, log
    assert log.startswith("Ray is not installed where this job runs")
