"""Jobs through each engine to their end, beside a loop of its bare client; a look at many pods.

`BENCH_ENGINE_JOBS` says how many jobs each engine is given (300), `BENCH_PODS` how many pods are looked at
(2,000).  An engine that this machine lacks is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx
import pytest

from console.configuration import keys
from console.home import CHECKOUT
from jobs.backends.base import Submission
from jobs.backends.kubernetes.client.api import Api
from jobs.states import ReasonCode
from tests import ray_cluster, slurm
from tests.bench.figures import Figure
from tests.bench.slurm import measure_cpu
from tests.jobs.backends.benches import role
from tests.jobs.backends.kubernetes_bench import KubernetesBench, Releasing
from tests.kubernetes import cluster as kubernetes
from tests.kubernetes import images
from tests.ports import free_port
from tests.serving import RedisServer
from tests.waiting import wait_for

JOBS: Final = int(os.environ.get("BENCH_ENGINE_JOBS", "300"))
PODS: Final = int(os.environ.get("BENCH_PODS", "2000"))
PODS_OF_A_JOB: Final = 100
ROUNDS: Final = 2
"""By turns, so that whatever else the machine does falls on both."""

WARM: Final = 2
"""So many jobs go each way before it is measured, one after the other."""

PATIENCE_S: Final = 1800
TARGET: Final = "≤ 1.25×"

Way = Callable[[int], None]
"""Runs so many jobs to their end."""


def measure() -> list[Figure]:
    """Measure one engine after the other, each on a cluster of its own."""
    found: list[Figure] = []
    for engine in (_measure_slurm, _measure_ray, _measure_kubernetes):
        try:
            found += engine()
        except pytest.skip.Exception as lacking:
            print(f"left out: {lacking}", file=sys.stderr, flush=True)
    return found


def _compare(engine: str, client: str, bare: Way, ours: Way) -> Figure:
    ways, took = (ours, bare), [0.0, 0.0]
    for way in ways:
        for _ in range(WARM):
            way(1)
    for _ in range(ROUNDS):
        for number, way in enumerate(ways):
            begun = time.perf_counter()
            way(JOBS // ROUNDS)
            took[number] += time.perf_counter() - begun
    what = f"{JOBS:,} accepted jobs through {engine}, to their end"
    return Figure(what, took[0], "s", took[1], f"a loop of {client}", TARGET)


@contextmanager
def _console(backend: str, config: Mapping[str, Any], port: int = 0, folder: str = "") -> Iterator[Way]:
    """Give a console that accepts jobs and runs them to their end."""
    redis = RedisServer()
    redis.start()
    try:
        with tempfile.TemporaryDirectory(prefix="jc-") as home:
            keys.ensure(Path(home))
            more = {"CONSOLE_HOME": home, "DATABASE_URL": "", "REDIS_URL": redis.url}
            more |= {"BENCH_PORT": str(port or ""), "CONSOLE_SLURM_FOLDER": folder}
            with subprocess.Popen(
                [sys.executable, "-m", "tests.bench.drain", json.dumps({"one": (backend, config)})],
                cwd=CHECKOUT,
                env={**os.environ, **more},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            ) as child:
                try:
                    yield lambda count: _run(child, count)
                finally:
                    child.kill()
    finally:
        redis.remove()


def _run(child: subprocess.Popen[str], count: int) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"one {count} run\n")
    child.stdin.flush()
    answer = json.loads(child.stdout.readline())
    if answer["reasons"] != {ReasonCode.COMPLETED: count}:
        raise RuntimeError(f"of {count} jobs ended: {answer['reasons']}")


def _measure_slurm() -> Iterator[Figure]:
    if lacking := slurm.missing():
        pytest.skip(lacking)
    with slurm.server() as running, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        environ = {**os.environ, "SLURM_CONF": str(running.configuration)}
        command = ("sbatch", "--parsable", "--mem=64", "--output=/dev/null", "--wrap=true")

        def bare(count: int) -> None:
            for _ in range(count):
                subprocess.run(command, env=environ, check=True, capture_output=True, cwd="/")
            wait_for(lambda: not running.call("squeue", "--noheader"), PATIENCE_S, interval=0.1)

        config = {"configuration": str(running.configuration), "allow_plain": True}
        with _console("slurm", config, folder=folder) as ours:
            yield _compare("Slurm", "sbatch", bare, ours)


def _measure_ray() -> Iterator[Figure]:
    port = free_port()
    with (
        ray_cluster.cluster() as running,
        tempfile.TemporaryDirectory(prefix="job-console-bench-", dir="/var/tmp") as folder,
        httpx.Client(
            base_url=running.url,
            headers={"Authorization": f"Bearer {running.token}"},
            timeout=60,
            trust_env=False,
        ) as client,
    ):

        def bare(count: int) -> None:
            body = {"entrypoint": "true", "entrypoint_num_cpus": 0.05}
            names = [client.post("/api/jobs/", json=body).json()["submission_id"] for _ in range(count)]

            def are_over() -> bool:
                states = {each["submission_id"]: each["status"] for each in client.get("/api/jobs/").json()}
                return all(states[name] == "SUCCEEDED" for name in names)

            wait_for(are_over, PATIENCE_S, interval=0.2)

        running.kill_node(ray_cluster.NODES[1])  # nodes of one machine remove each other's unpacked packages
        config = {
            "url": running.url,
            "token": running.token,
            "console_url": f"http://127.0.0.1:{port}",
            "nodes_folder": folder,
        }
        with _console("ray", config, port) as ours:
            yield _compare("Ray", "its Jobs API", bare, ours)


def _measure_kubernetes() -> Iterator[Figure]:
    if lacking := kubernetes.find_missing():
        pytest.skip(lacking)
    namespace = "default"  # which is not emptied: the cluster ends with all in it
    with kubernetes.server() as running:
        config = {
            "url": running.server,
            "ca": running.ca,
            "token": running.token,
            "namespace": namespace,
        }
        with _console("kubernetes", config) as ours:
            yield _compare("Kubernetes", "its API", _pod_loop(running.api, namespace), ours)
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            yield from _look_at_pods(KubernetesBench(Path(folder), running, namespace))


def _pod_loop(api: Api, namespace: str) -> Way:
    """Return a loop that creates pods and waits for them; the same client, without anything of jobs."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    amounts = {"cpu": "50m", "memory": "32Mi"}
    container = {
        "name": "main",
        "image": images.BASE,
        "command": ["true"],
        "resources": {"limits": amounts, "requests": amounts},
    }
    spec = {"restartPolicy": "Never", "containers": [container]}

    def bare(count: int) -> None:
        about = {"generateName": "bare-", "labels": {"bench": "bare"}}
        for _ in range(count):
            api.create(path, {"metadata": about, "spec": spec})

        def are_over() -> bool:
            pods = api.list(path, labels="bench=bare").items
            return all(each["status"]["phase"] == "Succeeded" for each in pods)

        wait_for(are_over, PATIENCE_S, interval=0.2)
        api.delete_many(path, labels="bench=bare")

    return bare


class Unchecked(Releasing):
    """The backend on nodes that take no more pods: nothing of the jobs runs while they are looked at."""

    def _check_room(self, submission: Submission) -> None:
        """Take any job."""


def _look_at_pods(bench: KubernetesBench) -> Iterator[Figure]:
    """Yield what one look at many pods takes, beside the bare listing."""
    for node in ("node1", "node2"):
        bench.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    backend = Unchecked(bench.config)
    jobs = (bench.submission(role("true", replicas=PODS_OF_A_JOB)) for _ in range(PODS // PODS_OF_A_JOB))
    handles = [backend.submit(job) for job in jobs]
    wait_for(lambda: len(bench.pods()) == PODS, PATIENCE_S, interval=1)
    backend.observe(handles)
    asked: list[int] = []
    original = Api._check

    def check(self: Api, answer: httpx.Response) -> None:
        asked.append(answer.num_bytes_downloaded)
        original(self, answer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Api, "_check", check)
        backend.observe(handles)
    look = median(measure_cpu(lambda: backend.observe(handles)) for _ in range(5))
    bare = median(measure_cpu(bench.pods) for _ in range(5))
    what = f"a look at {PODS:,} pods of {len(handles)} jobs on Kubernetes"
    yield Figure(f"{what}, CPU", look, "s", bare, "the bare listing of them")
    yield Figure(f"{what}, answers of the API server", sum(asked) / 1e6, "MB")
    yield Figure(f"{what}, requests", len(asked), "")
