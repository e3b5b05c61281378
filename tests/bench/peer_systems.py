"""The systems that are compared: the console, Ray Jobs, Slurm and dstack, each by its usual client."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, Protocol, runtime_checkable

import httpx
import psutil

from tests import ray_cluster, slurm
from tests.bench import dstack
from tests.bench.accept import UNLIMITED, freeze_workers
from tests.bench.dstack import DstackServer
from tests.bench.load import Call
from tests.ray_cluster import RayCluster
from tests.scenes import MACHINE, job_file
from tests.slurm import Slurm
from tests.stack import Stack, running
from tests.waiting import wait_for

TOO_MANY_CPUS: Final = 10_000


class System(Protocol):
    """A system that accepts jobs."""

    name: str

    def submit(self) -> str:
        """Submit a job of `true`; return its id."""

    def hold(self) -> None:
        """Start none of the jobs that are submitted from now on."""

    def processes(self) -> Iterable[psutil.Process]:
        """Return all of its processes."""


@runtime_checkable
class ExecutingSystem(System, Protocol):
    """A system that can also run them on this machine."""

    def are_over(self, jobs: list[str]) -> bool:
        """Tell whether all these have succeeded."""


class Console:
    """This console, with its jobs on this machine."""

    name = "the console"

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        token = json.loads(stack.manage("issue_token", "admin"))["token"]
        self._client = _client(f"{stack.base_url}/api/console/v1", token)
        self._body = {"file": job_file("peer")}
        self._call = Call(f"{stack.base_url}/api/console/v1/jobs", token, json.dumps(self._body).encode())

    def submit(self) -> str:
        """See `System`."""
        return str(_parse(self._client.post("/jobs", json=self._body))["id"])

    def are_over(self, jobs: list[str]) -> bool:
        """See `ExecutingSystem`."""
        listed = _parse(self._client.get("/jobs", params={"state": "SUCCEEDED", "limit": 500}))["jobs"]
        return set(jobs) <= {each["id"] for each in listed}

    def hold(self) -> None:
        """See `System`."""
        wait_for(lambda: freeze_workers(self._stack, self._call), timeout=120)

    def processes(self) -> Iterable[psutil.Process]:
        """See `System`."""
        return self._stack.processes()


class RayJobs:
    """Ray's Jobs API."""

    name = "Ray Jobs"

    def __init__(self, cluster: RayCluster) -> None:
        self._cluster = cluster
        self._client = _client(f"{cluster.url}/api", cluster.token)
        self._body: dict[str, Any] = {"entrypoint": "true", "entrypoint_num_cpus": 0.05}

    def submit(self) -> str:
        """See `System`."""
        return str(_parse(self._client.post("/jobs/", json=self._body))["submission_id"])

    def are_over(self, jobs: list[str]) -> bool:
        """See `ExecutingSystem`."""
        listed = _parse(self._client.get("/jobs/"))
        return set(jobs) <= {each["submission_id"] for each in listed if each["status"] == "SUCCEEDED"}

    def hold(self) -> None:
        """See `System`."""
        self._body["entrypoint_num_cpus"] = TOO_MANY_CPUS

    def processes(self) -> Iterable[psutil.Process]:
        """See `System`."""
        nodes = [node.pid for node in self._cluster.nodes.values()]
        return _with_children([*nodes, *(each.pid for each in self._cluster.processes(""))])


class SlurmJobs:
    """Slurm by sbatch."""

    name = "Slurm"

    def __init__(self, cluster: Slurm) -> None:
        self._cluster = cluster
        self._command = ["sbatch", "--parsable", "--mem=64", "--output=/dev/null", "--wrap=true"]
        self._environ = {**os.environ, "SLURM_CONF": str(cluster.configuration)}

    def submit(self) -> str:
        """See `System`."""
        done = subprocess.run(self._command, env=self._environ, check=True, capture_output=True, cwd="/")
        return done.stdout.decode().strip()

    def are_over(self, jobs: list[str]) -> bool:
        """See `ExecutingSystem`."""
        listed = self._cluster.call("squeue", "--noheader", "--states=all", "--format=%i %T")
        states = dict(line.split() for line in listed.splitlines())
        return all(states.get(job) == "COMPLETED" for job in jobs)

    def hold(self) -> None:
        """See `System`."""
        self._command.append("--hold")

    def processes(self) -> Iterable[psutil.Process]:
        """See `System`."""
        return _with_children(self._cluster.processes())


class DstackRuns:
    """dstack's runs, on a server that has no hosts to run them on."""

    name = "dstack"

    def __init__(self, server: DstackServer) -> None:
        self._server = server
        self._client = _client(f"{server.url}/api/project/main", server.token)
        task = {"type": "task", "commands": ["true"]}
        self._body = {"plan": {"run_spec": {"configuration": task}}, "force": False}

    def submit(self) -> str:
        """See `System`."""
        return str(_parse(self._client.post("/runs/apply", json=self._body))["id"])

    def hold(self) -> None:
        """See `System`."""
        self._server.restart_without_scheduler()

    def processes(self) -> Iterable[psutil.Process]:
        """See `System`."""
        return _with_children([self._server.process.pid] if self._server.process else [])


@contextmanager
def systems() -> Iterator[tuple[System, ...]]:
    """Start all of them; skips where one of them cannot be had."""
    with ExitStack() as stack:
        console = stack.enter_context(running({**MACHINE, **UNLIMITED}))
        stack.callback(console.crash)  # frozen workers would not end
        ray, by_sbatch = stack.enter_context(ray_cluster.cluster()), stack.enter_context(slurm.server())
        server = stack.enter_context(dstack.server())
        yield Console(console), RayJobs(ray), SlurmJobs(by_sbatch), DstackRuns(server)


def _with_children(pids: Iterable[int]) -> Iterable[psutil.Process]:
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            found |= {each.pid: each for each in (root, *root.children(recursive=True))}
    return found.values()


def _client(url: str, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False)


def _parse(answer: httpx.Response) -> Any:
    answer.raise_for_status()
    return answer.json()
