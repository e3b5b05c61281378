"""The console beside Ray Jobs and Slurm on one machine: accepting, completing, CPU and memory.

All run at the same time and are used in turn, so that whatever else the machine does falls on each.  Jobs
that are only accepted do not start: Slurm holds them, Ray lacks their CPUs, the console's workers are frozen.
CPU is that of all processes of a system, and of sbatch, which is Slurm's client; the clients of the other two
are this process, and not counted.  `BENCH_PEER_JOBS` says how many jobs a round has (40).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from statistics import median
from typing import Any, Final, Protocol

import httpx
import psutil
import pytest

from tests import ray_cluster, slurm
from tests.bench.accept import UNLIMITED, freeze_workers
from tests.bench.figures import Figure
from tests.bench.load import Call
from tests.ray_cluster import RayCluster
from tests.scenes import MACHINE, job_file
from tests.slurm import Slurm
from tests.stack import Stack, running
from tests.waiting import wait_for

JOBS: Final = int(os.environ.get("BENCH_PEER_JOBS", "40"))
ROUNDS: Final = 3
CALLERS: Final = (1, 8)
PATIENCE_S: Final = 600
SETTLED_S: Final = 10.0
"""After a start, before memory is measured: programs load what they need for a while."""
TOO_MANY_CPUS: Final = 10_000
PR_SET_CHILD_SUBREAPER: Final = 36


class System(Protocol):
    """A system that runs jobs."""

    name: str

    def submit(self) -> str:
        """Submit a job of `true`; return its id."""

    def are_over(self, jobs: list[str]) -> bool:
        """Tell whether all these have succeeded."""

    def hold(self) -> None:
        """Start none of the jobs that are submitted from now on."""

    def processes(self) -> Iterable[psutil.Process]:
        """Return all of its processes."""


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
        return str(_checked(self._client.post("/jobs", json=self._body))["id"])

    def are_over(self, jobs: list[str]) -> bool:
        """See `System`."""
        listed = _checked(self._client.get("/jobs", params={"state": "SUCCEEDED", "limit": 500}))["jobs"]
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
        return str(_checked(self._client.post("/jobs/", json=self._body))["submission_id"])

    def are_over(self, jobs: list[str]) -> bool:
        """See `System`."""
        listed = _checked(self._client.get("/jobs/"))
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
        """See `System`."""
        listed = self._cluster.call("squeue", "--noheader", "--states=all", "--format=%i %T")
        states = dict(line.split() for line in listed.splitlines())
        return all(states.get(job) == "COMPLETED" for job in jobs)

    def hold(self) -> None:
        """See `System`."""
        self._command.append("--hold")

    def processes(self) -> Iterable[psutil.Process]:
        """See `System`."""
        return _with_children(self._cluster.processes())


def measure() -> list[Figure]:
    """Idle memory first, then jobs that run to their end, then jobs that are only accepted."""
    if lacking := ray_cluster.missing() or slurm.missing():
        pytest.skip(lacking)
    _adopt_orphans()
    with _systems() as systems:
        time.sleep(SETTLED_S)
        memory = {each.name: [_pss_mib(each)] for each in systems}
        rates: dict[str, list[float]] = {each.name: [] for each in systems}
        spent: dict[str, list[float]] = {each.name: [] for each in systems}
        for each in systems:
            _complete(each, 1)
        for each in [*systems] * ROUNDS:
            before, begun = _cpu_s(each), time.perf_counter()
            _complete(each, JOBS)
            rates[each.name].append(JOBS / (time.perf_counter() - begun))
            spent[each.name].append((_cpu_s(each) - before) / JOBS)
        for each in systems:
            each.hold()
        by_one, by_many = (_accept_in_turn(systems, callers) for callers in CALLERS)
    return [
        *_beside("jobs accepted, 1 caller", by_one, "/s"),
        *_beside(f"jobs accepted, {CALLERS[1]} callers", by_many, "/s"),
        *_beside("jobs of `true` completed", rates, "/s"),
        *_beside("CPU of a job, all processes", spent, "s"),
        *_beside("memory when idle (PSS)", memory, "MiB"),
    ]


def _beside(what: str, values: dict[str, list[float]], unit: str) -> Iterator[Figure]:
    ours, *peers = values
    for peer in peers:
        yield Figure(what, median(values[ours]), unit, median(values[peer]), peer)


@contextmanager
def _systems() -> Iterator[tuple[System, ...]]:
    with ExitStack() as stack:
        console = stack.enter_context(running({**MACHINE, **UNLIMITED}))
        stack.callback(console.crash)  # frozen workers would not end
        ray, by_sbatch = stack.enter_context(ray_cluster.cluster()), stack.enter_context(slurm.server())
        yield Console(console), RayJobs(ray), SlurmJobs(by_sbatch)


def _submit(system: System, count: int, callers: int) -> list[str]:
    with ThreadPoolExecutor(callers) as threads:
        return list(threads.map(lambda _number: system.submit(), range(count)))


def _complete(system: System, count: int) -> None:
    jobs = _submit(system, count, max(CALLERS))
    wait_for(lambda: system.are_over(jobs), PATIENCE_S, interval=0.2)


def _accept_in_turn(systems: Iterable[System], callers: int) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {each.name: [] for each in systems}
    for each in [*systems] * ROUNDS:
        begun = time.perf_counter()
        _submit(each, JOBS, callers)
        rates[each.name].append(JOBS / (time.perf_counter() - begun))
    return rates


def _adopt_orphans() -> None:
    """Have what outlives its parent become this process's child: its CPU is known at its end."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def _cpu_s(system: System) -> float:
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess, ChildProcessError):
            if child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = ended.ru_utime + ended.ru_stime
    for process in system.processes():
        with suppress(psutil.NoSuchProcess):
            used += sum(process.cpu_times()[:4])
    return used


def _pss_mib(system: System) -> float:
    found = 0
    for process in system.processes():
        with suppress(psutil.NoSuchProcess):
            found += process.memory_full_info().pss
    return found / 2**20


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


def _checked(answer: httpx.Response) -> Any:
    answer.raise_for_status()
    return answer.json()
