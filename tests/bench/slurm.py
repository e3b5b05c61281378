"""Accepted jobs into a real Slurm, and by its backend alone, beside plain loops of sbatch and slurmrestd; a
look at a long queue; the first line of a log beside srun.

`BENCH_SLURM_JOBS` says how many jobs are handed over (1,000); the queue that is looked at is ten times as
long.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx
import pytest

from console import keys
from console.home import CHECKOUT
from jobs.backends.base import Handle, TaskRef
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.programs import Programs
from tests import slurm as slurms
from tests.bench.figures import Figure
from tests.jobs.backends.benches import role
from tests.jobs.backends.slurm_bench import SlurmBench, by_rest
from tests.serving import RedisServer
from tests.slurm import Slurm
from tests.waiting import wait_for

JOBS: Final = int(os.environ.get("BENCH_SLURM_JOBS", "1000"))
LONGER: Final = 10
ROUNDS: Final = 10
LINES: Final = 10
WARM: Final = 4
"""So many jobs go each way before it is measured."""


def measure() -> list[Figure]:
    """On a Slurm of its own, whose nodes start nothing while jobs are handed over."""
    if lacking := slurms.missing():
        pytest.skip(lacking)
    with slurms.server() as slurm, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        bench = SlurmBench(Path(folder), slurm)
        first_lines = _first_lines(bench)
        slurm.call("scontrol", "update", "NodeName=ALL", "State=DRAIN", "Reason=bench")
        drained, handles = _drained(bench)
        return [*drained, *_looks(bench, handles), *first_lines]


def _drained(bench: SlurmBench) -> tuple[list[Figure], list[Handle]]:
    """By turns, so that whatever else the machine does falls on all three."""
    backend = SlurmBackend(bench.config)
    handles: list[Handle] = []

    def ours(count: int) -> None:
        made = [backend.submit(bench.submission(role("true"))) for _ in range(count)]
        backend.release(made)
        handles.extend(made)

    took = dict.fromkeys(("commands", "rest", "backend", "sbatch", "loop"), 0.0)
    with _rest_loop(bench.slurm) as rest_loop, _console(bench) as drain:
        ways: dict[str, Callable[[int], float]] = {
            "commands": partial(drain, "commands"),
            "sbatch": _timed(_sbatch_loop(bench)),
            "rest": partial(drain, "rest"),
            "loop": _timed(rest_loop),
            "backend": _timed(ours),
        }
        for way in ways.values():
            way(WARM)
        for _ in range(ROUNDS):
            for name, way in ways.items():
                took[name] += way(JOBS // ROUNDS)
    whole = f"{JOBS:,} accepted jobs into Slurm, held and released, by"
    target = "≤ 1.15× the faster"
    return [
        Figure(f"{whole} commands", took["commands"], "s", took["sbatch"], "a loop of sbatch", target),
        Figure(f"{whole} commands", took["commands"], "s", took["loop"], "a loop of slurmrestd", target),
        Figure(f"{whole} slurmrestd", took["rest"], "s", took["sbatch"], "a loop of sbatch", target),
        Figure(f"{whole} slurmrestd", took["rest"], "s", took["loop"], "a loop of slurmrestd", target),
        Figure(
            "the backend's part of it, by commands", took["backend"], "s", took["sbatch"], "a loop of sbatch"
        ),
    ], handles


def _timed(way: Callable[[int], None]) -> Callable[[int], float]:
    def timed(count: int) -> float:
        begun = time.perf_counter()
        way(count)
        return time.perf_counter() - begun

    return timed


@contextmanager
def _console(bench: SlurmBench) -> Iterator[Callable[[str, int], float]]:
    """A console that accepts so many jobs on demand, and says the seconds until all are let go."""
    config = {"configuration": str(bench.slurm.configuration), "allow_plain": True}
    clusters = {"commands": config, "rest": {**config, **by_rest(bench.slurm)}}
    redis = RedisServer()
    redis.start()
    shared = bench.folder / "shared"
    shared.mkdir()
    try:
        with tempfile.TemporaryDirectory(prefix="jc-") as home:
            keys.ensure(Path(home))
            more = {"CONSOLE_HOME": home, "DATABASE_URL": "", "REDIS_URL": redis.url}
            with subprocess.Popen(
                [sys.executable, "-m", "tests.bench.drain", json.dumps(clusters)],
                cwd=CHECKOUT,
                env={**os.environ, **more, "CONSOLE_SLURM_FOLDER": str(shared)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            ) as child:
                yield partial(_drain, child)
                child.kill()
    finally:
        redis.remove()


def _drain(child: subprocess.Popen[str], name: str, count: int) -> float:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{name} {count}\n")
    child.stdin.flush()
    said = json.loads(child.stdout.readline())
    if said["sent"] != count:
        raise RuntimeError(f"{said['sent']} of {count} jobs were handed over")
    return float(said["s"])


def _sbatch_loop(bench: SlurmBench) -> Callable[[int], None]:
    environ = {**os.environ, "SLURM_CONF": str(bench.slurm.configuration)}
    command = ["sbatch", "--parsable", "--output=/dev/null", "--wrap=true"]

    def loop(count: int) -> None:
        for _ in range(count):
            subprocess.run(command, env=environ, check=True, capture_output=True, cwd="/")

    return loop


@contextmanager
def _rest_loop(slurm: Slurm) -> Iterator[Callable[[int], None]]:
    headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": slurm.token()}
    job = {
        "name": "loop",
        "environment": {"PATH": "/usr/bin:/bin"},
        "current_working_directory": "/",
        "standard_output": "/dev/null",
    }
    told = {"script": "#!/bin/sh\ntrue\n", "job": job}
    with httpx.Client(base_url=slurm.rest, headers=headers, trust_env=False, timeout=60) as client:

        def loop(count: int) -> None:
            for _ in range(count):
                answer = client.post("/slurm/v0.0.38/job/submit", json=told)
                answer.raise_for_status()
                if not answer.json().get("job_id"):
                    raise RuntimeError(answer.text)

        yield loop


def _looks(bench: SlurmBench, handles: list[Handle]) -> list[Figure]:
    """One look at the jobs that were handed over, in a queue filled up with others of the same user."""
    fill = _sbatch_loop(bench)
    fill(max(0, JOBS * LONGER - JOBS * 5))
    backend, plain = SlurmBackend(bench.config), Programs(bench.config)
    told: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Programs, "squeue", _counted(Programs.squeue, told))
        look = median(_cpu(lambda: backend.observe(handles)) for _ in range(5))
    bare = median(_cpu(lambda: plain.squeue("--format=%i %T")) for _ in range(5))
    what = f"a look at {len(handles):,} jobs in a queue of {JOBS * LONGER:,}"
    return [
        Figure(f"{what}, CPU", look, "s", bare, "squeue with number and state"),
        Figure(f"{what}, told by Slurm", told[0] / 1e6, "MB"),
    ]


def _counted(original: Callable[..., str], told: list[int]) -> Callable[..., str]:
    def squeue(self: Programs, *arguments: str) -> str:
        said = original(self, *arguments)
        told.append(len(said.encode()))
        return said

    return squeue


def _cpu(act: Callable[[], Any]) -> float:
    """CPU time of this process and of the programs that it ran."""
    before = _used()
    act()
    return _used() - before


def _used() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def _first_lines(bench: SlurmBench) -> list[Figure]:
    """From the submission to the line in the log; beside it, from srun's beginning to its end."""
    ours = median(_first_line(bench) for _ in range(LINES))
    srun = median(_line_of_srun(bench.slurm) for _ in range(LINES))
    return [Figure("submit → first log line, p50", ours, "s", srun, "srun")]


def _first_line(bench: SlurmBench) -> float:
    begun = time.perf_counter()
    handle = bench.backend.submit(bench.submission(role("echo up")))
    wait_for(lambda: bench.backend.read_log(handle, TaskRef("worker", 0), "", 10).data, 60, interval=0.01)
    return time.perf_counter() - begun


def _line_of_srun(slurm: Slurm) -> float:
    begun = time.perf_counter()
    slurm.call("srun", "--ntasks=1", "--mem=64", "--mpi=none", "echo", "up")
    return time.perf_counter() - begun
