"""Replicas on this machine by the local backend alone: starts, sleeping jobs, many jobs, many replicas.

`BENCH_NODE_JOBS` says how many jobs of `true` there are (1,000), which is also the number of replicas of one
job; half as many sleep.  Each way to have a network is measured where the backend has the setting.
"""

from __future__ import annotations

import itertools
import os
import secrets
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil

from jobs.backends.base import Handle, Observation, Person, ReplicaRef, Submission
from jobs.backends.local.backend import LocalBackend
from jobs.backends.local.config import LocalConfig
from jobs.spec import JobSpec, Resources, RoleSpec
from jobs.states import TERMINAL, State
from tests.bench.figures import Figure
from tests.waiting import wait_for

JOBS: Final = int(os.environ.get("BENCH_NODE_JOBS", "1000"))
SLEEPING: Final = JOBS // 2
STARTS: Final = 20
WATCHED_S: Final = float(os.environ.get("BENCH_NODE_SECONDS", "30"))
TIMEOUT_S: Final = 900
_SLEEP: Final = "exec sleep 1000003"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def measure() -> list[Figure]:
    """Measure each kind of network, in turn where that is one start at a time."""
    networks = ("own", "host") if "network" in LocalConfig.__dataclass_fields__ else ("",)
    figures = _starts(networks)
    for network in networks:
        name = f", network {network}" if network else ""
        with _bench(network) as bench:
            figures += [*_sleepers(bench, name)]
        with _bench(network) as bench:
            figures += [_short_jobs(bench, name)]
        with _bench(network) as bench:
            figures += [*_one_job(bench, name)]
    return figures


@dataclass
class NodeBench:
    """A local backend with a root of its own."""

    backend: LocalBackend
    root: Path
    installation: str = field(default_factory=lambda: f"b{secrets.token_hex(3)}")
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def submit(self, command: str, replicas: int = 1) -> Handle:
        """Submit a job of one role."""
        number = next(self.numbers)
        role = RoleSpec(
            name="worker",
            replicas=replicas,
            command=command,
            resources=Resources(cpu_milli=10, memory_mib=64),
        )
        return self.backend.submit(
            Submission(
                key=f"{self.installation}-job{number}-1",
                job_id=f"job{number}",
                attempt=1,
                spec=JobSpec(name="bench", roles=(role,)),
                person=Person("alice", 7),
            )
        )

    def wait(self, handles: Sequence[Handle], states: Iterable[State]) -> None:
        """Wait until every attempt is in one of these states, or has ended."""
        wanted, left = {*states, *TERMINAL}, list(handles)

        def none_left() -> bool:
            seen = self.backend.observe(left)
            left[:] = [each for each in left if self._state(seen[each]) not in wanted]
            return not left

        wait_for(none_left, timeout=TIMEOUT_S)

    @staticmethod
    def _state(seen: object) -> State | None:
        return seen.state if isinstance(seen, Observation) else None

    def processes(self) -> list[psutil.Process]:
        """Return the processes that look after the jobs, the jobs' own not among them."""
        return [process for process in psutil.process_iter() if self._looks_after(process)]

    def _looks_after(self, process: psutil.Process) -> bool:
        """Tell by the command line, or by the variable that marks who keeps a network."""
        try:
            if str(self.root) in "\n".join(process.cmdline()):
                return True
            return process.environ().get("JOB_CONSOLE_ROUTER", "").startswith(f"{self.installation}-")
        except psutil.Error:
            return False

    def stop(self, handles: Sequence[Handle]) -> None:
        """End these jobs."""
        for handle in handles:
            self.backend.stop(handle, grace_s=0, signal="KILL")
        self.wait(handles, TERMINAL)


@contextmanager
def _bench(network: str) -> Iterator[NodeBench]:
    settings: dict[str, Any] = {"network": network} if network else {}
    with tempfile.TemporaryDirectory(prefix="jc-", dir="/var/tmp") as folder:
        home = Path(folder)
        config = LocalConfig(
            root=home / "jobs",
            hide=home,
            bell=home / "bell",
            cpu_milli=10**7,
            memory_mib=10**7,
            **settings,
        )
        bench = NodeBench(LocalBackend(config), config.root)
        try:
            yield bench
        finally:
            for process in bench.processes():
                with suppress(psutil.Error):
                    process.kill()


def _starts(networks: Sequence[str]) -> list[Figure]:
    """Submit → first line in the log, by turns with a process that is started by hand."""
    took: dict[str, list[float]] = {network: [] for network in networks}
    by_hand = []
    with _all_benches(networks) as benches:
        for turn in range(STARTS + 2):
            by_hand.append(_first_line_by_hand())
            for network, bench in benches.items():
                took[network].append(_first_line(bench))
            if turn == 1:  # what is started for the first job alone is warm
                for series in (by_hand, *took.values()):
                    series.clear()
    return [
        Figure(
            f"submit → first line{f', network {network}' if network else ''}, p50",
            1000 * median(took[network]),
            "ms",
            1000 * median(by_hand),
            "bash",
            "≤ host + 60 ms" if network == "own" else "",
        )
        for network in networks
    ]


@contextmanager
def _all_benches(networks: Sequence[str]) -> Iterator[dict[str, NodeBench]]:
    if not networks:
        yield {}
        return
    with _bench(networks[0]) as bench, _all_benches(networks[1:]) as others:
        yield {networks[0]: bench, **others}


def _first_line(bench: NodeBench) -> float:
    began = time.perf_counter()
    handle = bench.submit("echo here")
    replica = ReplicaRef("worker", 0)
    while not bench.backend.read_log(handle, replica, "", 100).data:
        time.sleep(0.001)
    took = time.perf_counter() - began
    bench.wait([handle], TERMINAL)
    return took


def _first_line_by_hand() -> float:
    began = time.perf_counter()
    subprocess.run(["/bin/bash", "-c", "echo here"], stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - began


def _sleepers(bench: NodeBench, name: str) -> Iterator[Figure]:
    """Jobs in which nothing happens: what they cost, and how fast they are there."""
    began = time.perf_counter()
    handles = [bench.submit(_SLEEP) for _ in range(SLEEPING)]
    bench.wait(handles, [State.RUNNING])
    running_s = time.perf_counter() - began
    yield Figure(f"{SLEEPING:,} jobs, all running{name}", running_s, "s", target="≤ 40 s")
    ours = bench.processes()
    before = sum(map(_cpu_s, ours))
    time.sleep(WATCHED_S)
    used = sum(map(_cpu_s, ours)) - before
    yield Figure(f"{SLEEPING:,} sleeping jobs, of a core{name}", 100 * used / WATCHED_S, "%", target="≤ 5 %")
    memory = sum(map(_pss_mib, ours)) / SLEEPING
    yield Figure(f"{SLEEPING:,} sleeping jobs, each{name}", memory, "MiB", target="≤ 4 MB")
    bench.stop(handles)


def _short_jobs(bench: NodeBench, name: str) -> Figure:
    began = time.perf_counter()
    handles = [bench.submit("true") for _ in range(JOBS)]
    bench.wait(handles, TERMINAL)
    took = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(JOBS):
        subprocess.run(["/bin/bash", "-c", "true"], check=True)
    by_hand = time.perf_counter() - began
    return Figure(f"{JOBS:,} jobs of true{name}", took, "s", by_hand, "bash, one by one", "≤ 60 s")


def _one_job(bench: NodeBench, name: str) -> Iterator[Figure]:
    """One job of many replicas."""
    with _highest_load() as load:
        began = time.perf_counter()
        handle = bench.submit(_SLEEP, replicas=JOBS)

        def is_running() -> bool:
            seen = bench.backend.observe([handle])[handle]
            return (
                isinstance(seen, Observation) and sum(r.started_at is not None for r in seen.replicas) == JOBS
            )

        wait_for(is_running, timeout=TIMEOUT_S)
        took = time.perf_counter() - began
    yield Figure(f"one job of {JOBS:,} replicas, all running{name}", took, "s", target="≤ 60 s")
    yield Figure(f"its highest load average of a minute{name}", max(load), "", target="< 20")
    bench.stop([handle])


@contextmanager
def _highest_load() -> Iterator[list[float]]:
    found, over = [os.getloadavg()[0]], threading.Event()

    def look() -> None:
        while not over.wait(1):
            found.append(os.getloadavg()[0])

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _cpu_s(process: psutil.Process) -> float:
    """Return the seconds of CPU that a process has used; 0 once it has ended."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _pss_mib(process: psutil.Process) -> float:
    """Return the memory of a process, with shared pages divided among those that share them."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)
