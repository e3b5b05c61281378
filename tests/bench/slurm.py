"""Accepted jobs into a real Slurm, and by its backend alone, beside plain loops of sbatch and slurmrestd; a
look at a long queue; the first line of a log beside srun.

`BENCH_SLURM_JOBS` says how many jobs are handed over (1,000), `BENCH_SLURM_QUEUE` how long the queue is that
is looked at then (10,000).
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
from typing import Any, Final, Protocol

import httpx
import pytest

from console.configuration import keys
from console.home import CHECKOUT
from jobs.backends.base import Handle, ReplicaRef
from jobs.backends.slurm.backend import SlurmBackend
from jobs.backends.slurm.client.programs import Programs
from jobs.backends.slurm.client.rest.client import RestAnswer, RestClient
from jobs.backends.slurm.config import SlurmConfig
from tests import slurm as slurms
from tests.bench.figures import Figure
from tests.jobs.backends.benches import role
from tests.jobs.backends.slurm_bench import TOKEN_COMMAND, SlurmBench, by_rest
from tests.serving import RedisServer
from tests.slurm import Slurm
from tests.waiting import wait_for

JOBS: Final = int(os.environ.get("BENCH_SLURM_JOBS", "1000"))
QUEUE: Final = int(os.environ.get("BENCH_SLURM_QUEUE", "10000"))
ROUNDS: Final = 10
LINES: Final = 10
WARM: Final = 4
"""So many jobs go each way before it is measured."""


class RestLoop(Protocol):
    """So many jobs by slurmrestd, one after the other."""

    def __call__(self, count: int, *, held: bool = False) -> None: ...


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
    """By turns, so that whatever else the machine does falls on all of them."""
    backend = SlurmBackend(bench.config)
    handles: list[Handle] = []

    def ours(count: int) -> None:
        made = [backend.submit(bench.submission(role("true"))) for _ in range(count)]
        backend.release(made)
        handles.extend(made)

    with _rest_loop(bench.slurm) as rest_loop, _console(bench) as drain:
        ways: dict[str, Callable[[int], float]] = {
            "commands": partial(drain, "commands"),
            "sbatch": _timed(_sbatch_loop(bench)),
            "rest": partial(drain, "rest"),
            "loop": _timed(rest_loop),
            "backend": _timed(ours),
            "sbatch held": _timed(_sbatch_loop(bench, held=True)),
            "loop held": _timed(partial(rest_loop, held=True)),
            "database": partial(drain, "database"),
        }
        took = dict.fromkeys(ways, 0.0)
        for way in ways.values():
            way(WARM)
        for _ in range(ROUNDS):
            for name, way in ways.items():
                took[name] += way(JOBS // ROUNDS)
    return list(_figures_of(took)), handles


def _figures_of(took: dict[str, float]) -> Iterator[Figure]:
    whole = f"{JOBS:,} accepted jobs into Slurm, held and released, by"
    held = "a loop that holds and releases"
    for way, said, loop in (("commands", "commands", "sbatch held"), ("rest", "slurmrestd", "loop held")):
        yield Figure(f"{whole} {said}", took[way], "s", took[loop], held, "≤ 1.15×")
    loops = {"sbatch": "a loop of sbatch", "loop": "a loop of slurmrestd"}
    parts = {
        "backend": ("the backend's part of it, by commands, one after the other", "sbatch"),
        "sbatch held": ("a loop of sbatch --hold, and one scontrol release", "sbatch"),
        "loop held": ("a loop of slurmrestd, held, and released by another request each", "loop"),
        "database": ("the same drain before an engine that answers at once", "loop"),
    }
    for name, (what, loop) in parts.items():
        yield Figure(what, took[name], "s", took[loop], loops[loop])


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
    settings = {"commands": config, "rest": {**config, **by_rest(bench.slurm)}, "database": config}
    clusters = {name: ("slurm", each) for name, each in settings.items()}
    redis = RedisServer()
    redis.start()
    shared = bench.folder / "shared"
    shared.mkdir()
    try:
        with tempfile.TemporaryDirectory(prefix="jc-") as home:
            keys.ensure(Path(home))
            more = {"CONSOLE_HOME": home, "DATABASE_URL": "", "REDIS_URL": redis.url}
            more["CONSOLE_SLURM_TOKEN_COMMAND"] = ",".join(TOKEN_COMMAND)
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


def _sbatch_loop(bench: SlurmBench, *, held: bool = False) -> Callable[[int], None]:
    environ = {**os.environ, "SLURM_CONF": str(bench.slurm.configuration)}
    command = ["sbatch", "--parsable", "--output=/dev/null", "--wrap=true", *(["--hold"] if held else [])]

    def run(*arguments: str) -> str:
        done = subprocess.run(arguments, env=environ, check=True, capture_output=True, text=True, cwd="/")
        return done.stdout.strip()

    def loop(count: int) -> None:
        made = [run(*command) for _ in range(count)]
        if held:
            run("scontrol", "release", ",".join(made))

    return loop


@contextmanager
def _rest_loop(slurm: Slurm) -> Iterator[RestLoop]:
    headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": slurm.token()}
    job = {
        "name": "loop",
        "environment": {"PATH": "/usr/bin:/bin"},
        "current_working_directory": "/",
        "standard_output": "/dev/null",
    }
    told = {"script": "#!/bin/sh\ntrue\n", "job": job}
    with httpx.Client(base_url=slurm.rest, headers=headers, trust_env=False, timeout=60) as client:

        def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
            answer = client.post(f"/slurm/v0.0.38{path}", json=body)
            answer.raise_for_status()
            return dict(answer.json())

        def loop(count: int, *, held: bool = False) -> None:
            asked = {**told, "job": {**job, "hold": True}} if held else told
            made = [post("/job/submit", asked)["job_id"] for _ in range(count)]
            if not all(made):
                raise RuntimeError("a job was not taken")
            if held:
                for number in made:
                    post(f"/job/{number}", {"hold": False})

        yield loop


def _looks(bench: SlurmBench, handles: list[Handle]) -> list[Figure]:
    """One look at the jobs that were handed over, in a queue filled up with others of the same user."""
    waiting = int(bench.slurm.call("squeue", "--noheader", "--array", "--format=%i").count("\n"))
    with _rest_loop(bench.slurm) as fill:
        fill(max(0, QUEUE - waiting))
    what = f"a look at {len(handles):,} jobs in a queue of {QUEUE:,}"
    asked: list[tuple[str, ...]] = []
    told: list[int] = []
    by_commands = SlurmBackend(bench.config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Programs, "squeue", _counted(Programs.squeue, asked, told))
        look = median(measure_cpu(lambda: by_commands.observe(handles)) for _ in range(5))
    bare = median(measure_cpu(lambda: Programs(bench.config).squeue(*asked[0])) for _ in range(5))
    settings = {**bench.told, **by_rest(bench.slurm), "timeout_s": 60}  # a listing of 10,000 takes its time
    by_requests = SlurmBackend(SlurmConfig.from_settings(bench.folder, settings))
    said: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RestClient, "_read", _weighed(RestClient._read, said))
        request = median(measure_cpu(lambda: by_requests.observe(handles)) for _ in range(3))
    beside = "squeue of the same listing"
    return [
        Figure(f"{what}, by commands, CPU", look, "s", bare, beside),
        Figure(f"{what}, by commands, told by Slurm", told[0] / 1e6, "MB"),
        Figure(f"{what}, by slurmrestd, CPU without its own", request, "s", bare, beside),
        Figure(f"{what}, by slurmrestd, told by it", max(said) / 1e6, "MB"),
    ]


def _counted(
    original: Callable[..., str], asked: list[tuple[str, ...]], told: list[int]
) -> Callable[..., str]:
    def squeue(self: Programs, *arguments: str) -> str:
        said = original(self, *arguments)
        asked.append(arguments)
        told.append(len(said.encode()))
        return said

    return squeue


def _weighed(original: Callable[..., RestAnswer], said: list[int]) -> Callable[..., RestAnswer]:
    def read(self: RestClient, status: int, body: bytes) -> RestAnswer:
        said.append(len(body))
        return original(self, status, body)

    return read


def measure_cpu(act: Callable[[], Any]) -> float:
    """CPU time of this process and of the programs that it ran."""
    before = _used()
    act()
    return _used() - before


def _used() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def _first_lines(bench: SlurmBench) -> list[Figure]:
    """From the submission to the line in the log; beside it, srun from its beginning to its end, and the same
    line by a script of one line and by one that begins a step, as ours does.
    """
    ours, srun, plain, step = [], [], [], []
    for _ in range(LINES):
        ours.append(_first_line(bench))
        srun.append(_line_of_srun(bench.slurm))
        plain.append(_line_of_sbatch(bench, "echo up"))
        step.append(_line_of_sbatch(bench, "srun --mpi=none echo up"))
    what = "submit → first log line, p50"
    return [
        Figure(what, median(ours), "s", median(srun), "srun"),
        Figure(what, median(ours), "s", median(plain), "sbatch of one line"),
        Figure(what, median(ours), "s", median(step), "sbatch of one srun"),
    ]


def _first_line(bench: SlurmBench) -> float:
    begun = time.perf_counter()
    handle = bench.backend.submit(bench.submission(role("echo up")))
    wait_for(lambda: bench.backend.read_log(handle, ReplicaRef("worker", 0), "", 10).data, 60, interval=0.01)
    return time.perf_counter() - begun


def _line_of_srun(slurm: Slurm) -> float:
    begun = time.perf_counter()
    slurm.call("srun", "--ntasks=1", "--mem=64", "--mpi=none", "echo", "up")
    return time.perf_counter() - begun


def _line_of_sbatch(bench: SlurmBench, command: str) -> float:
    out = Path(tempfile.mkdtemp(dir=bench.folder)) / "out"
    begun = time.perf_counter()
    bench.slurm.call("sbatch", "--parsable", "--mem=64", f"--output={out}", f"--wrap={command}")
    wait_for(lambda: out.exists() and out.stat().st_size, 60, interval=0.01)
    return time.perf_counter() - begun
