"""Start-up time and memory of the whole console, beside an empty project of the same shape.

The same shape: Redis, one uvicorn, the same two Celery workers with as many processes, and beat, all
started at once; without supervisord and without the process that watches backends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import Final

import httpx
import psutil
from celery import Celery

from console.configuration.servers import celery_broker
from console.home import CHECKOUT
from tests.bench.figures import Figure
from tests.ports import free_port
from tests.scenes import MACHINE
from tests.serving import RedisServer
from tests.stack import Stack
from tests.waiting import wait_for

WORKERS: Final = {"control": 2, "logs": 1}
BESIDE: Final = "empty Django + Celery"
SETTLED_S: Final = 5.0


def measure() -> list[Figure]:
    """The empty project, then a console's first start in a new folder and its second."""
    empty_start, empty_memory = empty_project()
    stack = Stack(MACHINE)
    try:
        first = _start(stack)
        stack.stop()
        again = _start(stack)
        time.sleep(SETTLED_S)
        memory = _memory_of(stack.processes())
    finally:
        stack.remove()
    return [
        Figure("first start, until all parts answer", first, "s", empty_start, BESIDE),
        Figure("each later start", again, "s", empty_start, BESIDE),
        Figure("memory of the whole stack, idle (PSS)", memory, "MiB", empty_memory, BESIDE),
    ]


def _start(stack: Stack) -> float:
    began = time.perf_counter()
    stack.start()
    return time.perf_counter() - began


def empty_project() -> tuple[float, float]:
    """Seconds until uvicorn and both workers answer, and MiB in use a little later."""
    redis = RedisServer()
    port = free_port()
    broker = celery_broker(redis.url)
    started: list[subprocess.Popen[bytes]] = []
    began = time.perf_counter()
    try:
        redis.start()
        started += [_run(broker, *command) for command in _commands(port)]
        app = Celery(broker=broker)
        wait_for(lambda: _answers(port) and len(app.control.ping(timeout=0.3) or ()) == len(WORKERS), 120)
        took = time.perf_counter() - began
        time.sleep(SETTLED_S)
        assert redis._process is not None
        parents = [psutil.Process(each.pid) for each in (redis._process, *started)]
        everybody = [each for parent in parents for each in (parent, *parent.children(recursive=True))]
        return took, _memory_of(everybody)
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)
        redis.remove()


def _commands(port: int) -> list[tuple[str, ...]]:
    celery = ("celery", "--app", "tests.bench.empty", "--quiet")
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    beat = (*celery, "beat", "-S", "celery.beat:Scheduler", "--pidfile=")
    web = ("uvicorn", "tests.bench.empty:application", "--port", str(port), "--log-level", "warning")
    workers = [
        (*celery, "worker", "--queues", name, "--hostname", f"{name}@%h", "--concurrency", str(size), *quiet)
        for name, size in WORKERS.items()
    ]
    return [web, *workers, beat]


def _run(broker: str, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=CHECKOUT,
        env={**os.environ, "BENCH_BROKER": broker},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _memory_of(processes: list[psutil.Process]) -> float:
    """MiB, each shared page counted once (PSS)."""
    found = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            found += process.memory_full_info().pss
    return found / 2**20
