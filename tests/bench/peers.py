"""The console beside Ray Jobs, Slurm and dstack on one machine: accepting, completing, CPU and memory.

All run at the same time and are used in turn, so that whatever else the machine does falls on each.  Jobs
that are only accepted do not start: Slurm holds them, Ray lacks their CPUs, the console's workers are frozen,
dstack's scheduler is off.  dstack has no hosts here, so it completes none.  CPU is that of all processes of a
system, and of sbatch, which is Slurm's client; the clients of the others are this process, and not counted.
`BENCH_PEER_JOBS` says how many jobs a round has (40).
"""

from __future__ import annotations

import ctypes
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from statistics import median
from typing import Final, TypeVar

import psutil
import pytest

from tests import ray_cluster, slurm
from tests.bench.figures import Figure
from tests.bench.peer_systems import ExecutingSystem, System, systems
from tests.waiting import wait_for

JOBS: Final = int(os.environ.get("BENCH_PEER_JOBS", "40"))
ROUNDS: Final = 3
CALLERS: Final = 8
PATIENCE_S: Final = 600
SETTLED_S: Final = 10.0
"""After a start, before memory is measured: programs load what they need for a while."""
PR_SET_CHILD_SUBREAPER: Final = 36

Values = dict[str, list[float]]
"""Of each system, by its name, a value of each round."""
SystemT = TypeVar("SystemT", bound=System)


def measure() -> list[Figure]:
    """Idle memory first, then jobs that run to their end, then jobs that are only accepted."""
    if lacking := ray_cluster.missing() or slurm.missing():
        pytest.skip(lacking)
    _adopt_orphans()
    with systems() as peers:
        time.sleep(SETTLED_S)
        memory = {each.name: [_pss_mib(each)] for each in peers}
        executing = [each for each in peers if isinstance(each, ExecutingSystem)]
        for each in executing:
            _complete(each, 1)
        completed, completing_s = _use_in_turn(executing, lambda system: _complete(system, JOBS))
        for peer in peers:
            peer.hold()
            peer.submit()
        by_one, _by_one_s = _use_in_turn(peers, lambda system: _submit(system, JOBS, 1))
        by_many, accepting_s = _use_in_turn(peers, lambda system: _submit(system, JOBS, CALLERS))
    return [
        *_compare("jobs accepted, 1 caller", by_one, "/s"),
        *_compare(f"jobs accepted, {CALLERS} callers", by_many, "/s"),
        *_compare("CPU of accepting a job, all processes", accepting_s, "s"),
        *_compare("jobs of `true` completed", completed, "/s"),
        *_compare("CPU of a job, all processes", completing_s, "s"),
        *_compare("memory when idle (PSS)", memory, "MiB"),
    ]


def _compare(what: str, values: Values, unit: str) -> Iterator[Figure]:
    ours, *peers = values
    for peer in peers:
        yield Figure(what, median(values[ours]), unit, median(values[peer]), peer)


def _submit(system: System, count: int, callers: int) -> list[str]:
    with ThreadPoolExecutor(callers) as threads:
        return list(threads.map(lambda _number: system.submit(), range(count)))


def _complete(system: ExecutingSystem, count: int) -> None:
    jobs = _submit(system, count, CALLERS)
    wait_for(lambda: system.are_over(jobs), PATIENCE_S, interval=0.2)


def _use_in_turn(used: Sequence[SystemT], work: Callable[[SystemT], object]) -> tuple[Values, Values]:
    """Do the `work` of `JOBS` jobs with each; return the jobs a second, and the CPU seconds of a job."""
    rates: Values = {each.name: [] for each in used}
    spent: Values = {each.name: [] for each in used}
    for each in [*used] * ROUNDS:
        before, begun = _cpu_s(each), time.perf_counter()
        work(each)
        rates[each.name].append(JOBS / (time.perf_counter() - begun))
        spent[each.name].append((_cpu_s(each) - before) / JOBS)
    return rates, spent


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
