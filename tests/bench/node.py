"""The local backend by its own interface: one job's first line, many jobs at rest, many short
ones, many at once, and one job of many replicas; beside Slurm's daemons where they are installed.

In every network that the cluster setting `network` can choose, on one root each.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, Protocol

import psutil

from jobs.backends.base import Handle, Observation, ReplicaRef
from jobs.backends.local.config import LocalConfig
from jobs.states import TERMINAL, ReplicaState
from tests import slurm as slurms
from tests.bench.figures import Figure
from tests.jobs.backends.benches import LocalBench, role
from tests.slurm import Slurm
from tests.waiting import wait_for

SLEEP: Final = ("sleep", "87654")
"""Nobody else sleeps so long: the jobs' own processes are told from the backend's by it."""

PATIENCE_S: Final = 900
SETTLED_S: Final = 5.0
ROOM: Final = {"cpu_milli": 10**6, "memory_mib": 10**6}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rounds of a first line, numbers of jobs and replicas, and seconds of watching sleeping jobs."""

    rounds: int = 15
    sleeping: int = 500
    short: int = 1_000
    replicas: int = 1_000
    watched_s: float = 30


@dataclass(frozen=True, slots=True)
class Measured:
    """Values of one engine, in the units of the figures."""

    first_line_ms: float
    by_hand_ms: float
    cpu_percent: float
    memory_mb: float
    short_s: float
    running_s: float
    replicas_s: float
    load: float


class Engine(Protocol):
    """An engine that runs jobs on this machine."""

    def submit(self, command: str, replicas: int = 1) -> None:
        """Hand over one job."""

    def first_line(self) -> float:
        """Return the seconds from the submission of a job to its first line."""

    def count_running(self) -> int:
        """Count the replicas that run."""

    def count_live(self) -> int:
        """Count the jobs that have not ended."""

    def processes(self) -> list[int]:
        """Return everything that runs for it, the jobs' own processes included."""

    def clear(self) -> None:
        """End all jobs, and return when nothing of them runs."""


def measure(sizes: Sizes = Sizes()) -> list[Figure]:
    """Each network in turn, then Slurm."""
    ours: dict[str, Measured] = {}
    for network in networks():
        with _local(network) as engine:
            ours[network] = _measure(engine, sizes)
    peer = None
    if not slurms.missing():
        with _slurm(sizes) as engine:
            peer = _measure(engine, sizes)
    return [figure for network, values in ours.items() for figure in _figures(network, values, peer, sizes)]


def networks() -> tuple[str, ...]:
    """Return the networks that a cluster can have."""
    is_chosen = "network" in {each.name for each in fields(LocalConfig)}
    return ("own", "host") if is_chosen else ("host",)


def _measure(engine: Engine, sizes: Sizes) -> Measured:
    lines, by_hand = [], []
    for _ in range(sizes.rounds):
        lines.append(engine.first_line())
        by_hand.append(_line_by_hand())
    wait_for(lambda: not engine.count_live(), PATIENCE_S, 0.1)
    short_s = _seconds_until(
        partial(_submit_all, engine, "true", sizes.short), lambda: not engine.count_live()
    )
    running_s = _seconds_until(
        partial(_submit_all, engine, "exec " + " ".join(SLEEP), sizes.sleeping),
        lambda: engine.count_running() >= sizes.sleeping,
    )
    time.sleep(SETTLED_S)
    cpu = _watch(engine, sizes.watched_s)
    memory = sum(map(_pss, _of_engine(engine))) / sizes.sleeping
    engine.clear()
    loads: list[float] = []

    def all_run() -> bool:
        loads.append(os.getloadavg()[0])
        return engine.count_running() >= sizes.replicas

    replicas_s = _seconds_until(lambda: engine.submit("exec " + " ".join(SLEEP), sizes.replicas), all_run)
    engine.clear()
    return Measured(
        first_line_ms=median(lines) * 1000,
        by_hand_ms=median(by_hand) * 1000,
        cpu_percent=cpu,
        memory_mb=memory / 1e6,
        short_s=short_s,
        running_s=running_s,
        replicas_s=replicas_s,
        load=max(loads),
    )


def _submit_all(engine: Engine, command: str, count: int) -> None:
    for _ in range(count):
        engine.submit(command)


def _figures(network: str, ours: Measured, peer: Measured | None, sizes: Sizes) -> Iterator[Figure]:
    where = f"network {network}: "
    first = f"{where}submit → first line, p50"
    yield Figure(first, ours.first_line_ms, "ms", ours.by_hand_ms, "the process by hand")

    def beside(what: str, name: str, unit: str) -> Figure:
        theirs = getattr(peer, name) if peer else None
        return Figure(where + what, getattr(ours, name), unit, theirs, "Slurm" if peer else "")

    if peer:
        yield Figure(first, ours.first_line_ms, "ms", peer.first_line_ms, "Slurm")
    yield beside(f"{sizes.sleeping:,} sleeping jobs, CPU of one core", "cpu_percent", "%")
    yield beside(f"{sizes.sleeping:,} sleeping jobs, memory of each (PSS)", "memory_mb", "MB")
    yield beside(f"{sizes.short:,} jobs of `true`, until all have ended", "short_s", "s")
    yield beside(f"{sizes.sleeping:,} jobs, until all run", "running_s", "s")
    yield beside(f"one job of {sizes.replicas:,} replicas, until all run", "replicas_s", "s")
    yield beside("the highest load meanwhile (1 min)", "load", "")


def _seconds_until(begin: Callable[[], Any], is_done: Callable[[], bool]) -> float:
    begun = time.perf_counter()
    begin()
    wait_for(is_done, PATIENCE_S, 0.2)
    return time.perf_counter() - begun


def _line_by_hand() -> float:
    begun = time.perf_counter()
    with subprocess.Popen(["bash", "-c", "echo up"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        return time.perf_counter() - begun


def _of_engine(engine: Engine) -> list[psutil.Process]:
    """Return the engine's own processes: all but the jobs' commands."""
    found: dict[int, psutil.Process] = {}
    for pid in engine.processes():
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            found |= {each.pid: each for each in (process, *process.children(recursive=True))}
    return [each for each in found.values() if not _is_command(each)]


def _is_command(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return _is_sleep(process.cmdline())
    return True


def _count_commands() -> int:
    return sum(_is_sleep(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"]))


def _is_sleep(arguments: Sequence[str]) -> bool:
    """Tell whether these are a job's own; srun puts the program's whole path before them."""
    return [each.rpartition("/")[2] for each in arguments] == [*SLEEP]


def _watch(engine: Engine, seconds: float) -> float:
    """Percent of one core that the engine takes, with the programs that it starts meanwhile."""
    before, begun = _cpu_of(engine), time.perf_counter()
    time.sleep(seconds)
    return 100 * (_cpu_of(engine) - before) / (time.perf_counter() - begun)


def _cpu_of(engine: Engine) -> float:
    used = 0.0
    for process in _of_engine(engine):
        with suppress(psutil.NoSuchProcess):
            used += sum(process.cpu_times()[:4])
    return used


def _pss(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return int(process.memory_full_info().pss)
    return 0


class LocalEngine:
    """The local backend."""

    def __init__(self, bench: LocalBench) -> None:
        self._bench = bench
        self._handles: list[Handle] = []

    def submit(self, command: str, replicas: int = 1) -> None:
        """Hand over one job."""
        submission = self._bench.submission(role(command, replicas=replicas))
        self._handles.append(self._bench.backend.submit(submission))

    def first_line(self) -> float:
        """Return the seconds from the submission of a job to its first line."""
        begun = time.perf_counter()
        self.submit("echo up")
        handle, ref = self._handles[-1], ReplicaRef("worker", 0)
        wait_for(lambda: self._bench.backend.read_log(handle, ref, "", 10).data, 60, interval=0.005)
        return time.perf_counter() - begun

    def count_running(self) -> int:
        """Count the replicas that run."""
        replicas = (replica for seen in self._seen() for replica in seen.replicas)
        return sum(replica.state is ReplicaState.RUNNING for replica in replicas)

    def count_live(self) -> int:
        """Count the jobs that have not ended; those that have are not looked at again."""
        live = [
            handle
            for handle, seen in self._bench.backend.observe(self._handles).items()
            if isinstance(seen, Observation) and seen.state not in TERMINAL
        ]
        self._handles = live
        return len(live)

    def processes(self) -> list[int]:
        """Return everything that runs for it, the jobs' own processes included."""
        return self._bench.processes()

    def clear(self) -> None:
        """End all jobs, and return when nothing of them runs."""
        for handle in self._handles:
            self._bench.backend.stop(handle, grace_s=0, signal="KILL")
        wait_for(lambda: not self.count_live(), PATIENCE_S, 0.2)
        wait_for(lambda: not _count_commands(), PATIENCE_S, 0.5)

    def _seen(self) -> list[Observation]:
        seen = self._bench.backend.observe(self._handles).values()
        return [each for each in seen if isinstance(each, Observation)]


class SlurmEngine:
    """Slurm by its programs."""

    def __init__(self, slurm: Slurm, folder: Path) -> None:
        self._slurm, self._folder = slurm, folder

    def submit(self, command: str, replicas: int = 1) -> None:
        """Hand over one job."""
        tasks = () if replicas == 1 else (f"--ntasks={replicas}",)
        step = command if replicas == 1 else f"srun --mpi=none {' '.join(SLEEP)}"
        self._sbatch(*tasks, "--output=/dev/null", f"--wrap={step}")

    def first_line(self) -> float:
        """Return the seconds from the submission of a job to its first line."""
        out = Path(tempfile.mkdtemp(dir=self._folder)) / "out"
        begun = time.perf_counter()
        self._sbatch(f"--output={out}", "--wrap=echo up")
        wait_for(lambda: out.exists() and out.stat().st_size, 60, interval=0.005)
        return time.perf_counter() - begun

    def count_running(self) -> int:
        """Count the replicas that run."""
        return _count_commands()

    def count_live(self) -> int:
        """Count the jobs that have not ended."""
        return len(self._slurm.call("squeue", "--noheader", "--format=%i").split())

    def processes(self) -> list[int]:
        """Return everything that runs for it, the jobs' own processes included."""
        return self._slurm.processes()

    def clear(self) -> None:
        """End all jobs, and return when nothing of them runs."""
        self._slurm.call("scancel", "--user=root")
        wait_for(lambda: not self.count_live(), PATIENCE_S, 0.5)

    def _sbatch(self, *options: str) -> None:
        self._slurm.call("sbatch", "--parsable", "--mem=64", *options)


@contextmanager
def _local(network: str) -> Iterator[Engine]:
    settings: dict[str, Any] = {**ROOM, **({"network": network} if len(networks()) > 1 else {})}
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as folder,
        ExitStack() as end,
    ):
        Path(folder).chmod(0o755)
        bench = LocalBench(Path(folder), settings)
        end.callback(bench.close)
        engine = LocalEngine(bench)
        end.callback(engine.clear)
        yield engine


@contextmanager
def _slurm(sizes: Sizes) -> Iterator[Engine]:
    """Nodes with as many cores as there are jobs: it gives each job one at least."""
    cpus = max(16, sizes.sleeping, sizes.replicas)
    with slurms.server(cpus=cpus) as slurm, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield SlurmEngine(slurm, Path(folder))
