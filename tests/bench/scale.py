"""What a job, a page and an idle console cost with many jobs behind them, beside the same with few.

BENCH_JOBS says how many, the fewest first ("1000,30000"); DATABASE_URL, on which server.  Each console is
filled by `manage.py demo`, and all are asked in turns.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Final

import httpx
import psutil

from tests.bench.figures import Figure, percentile
from tests.scenes import MACHINE
from tests.stack import AS_OPERATOR, Stack, running
from tests.waiting import wait_for

JOBS: Final = "/api/console/v1/jobs"
PAGES: Final = (
    "/",
    "/jobs/",
    "/jobs/?q=owner:me",
    "/jobs/?q=state:failed",
    "/jobs/?q=no-such-name",
    "/search?q=no-such-name",
    "/jobs/new",
    "/quotas/",
    "/reports/",
    "/audit/",
    "/audit/?refused=on",
    "/admin/",
    "/admin/jobs/job/",
    "/admin/jobs/attempt/",
    "/metrics",
    JOBS,
)
ROUNDS: Final = 20
RUNS: Final = 10
IDLE_S: Final = 60
FILE: Final = '{"protocolVersion": 1, "jobName": "%s", "image": "busybox", "taskRoles": [%s]}'
ROLE: Final = '{"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "command": "true"}'
TARGET: Final = "≤ 1.5×, ≤ 150 ms"


def measure() -> list[Figure]:
    """Ask every console for each page, then run jobs on each, then leave each alone."""
    counts = [int(each) for each in os.environ.get("BENCH_JOBS", "1000,30000").split(",")]
    with ExitStack() as opened:
        stacks = {count: opened.enter_context(_filled(count)) for count in counts}
        clients = {count: opened.enter_context(closing(stack.client())) for count, stack in stacks.items()}
        pages = {address: _ask_in_turns(clients, address) for address in PAGES}
        runs: dict[int, list[float]] = {count: [] for count in counts}
        for number in range(RUNS):
            for count, client in clients.items():
                runs[count].append(_run_job(client, f"true-{number}"))
        idle = {count: _idle_share(stack) for count, stack in stacks.items()}
    first = counts[0]
    beside = f"with {first:,}"
    figures = []
    for count in counts[1:]:
        for address, taken in pages.items():
            p95 = {each: 1000 * percentile(taken[each], 95) for each in (first, count)}
            what = f"{address} with {count:,} jobs, p95"
            figures.append(Figure(what, p95[count], "ms", p95[first], beside, TARGET))
        ends = {each: 1000 * percentile(runs[each], 50) for each in (first, count)}
        what = f"`true` with {count:,} jobs, submission → end seen, p50"
        figures.append(Figure(what, ends[count], "ms", ends[first], beside, "≤ 1.5×"))
        what = f"idle console with {count:,} jobs, of one core"
        figures.append(Figure(what, idle[count], "%", idle[first], beside, "≤ 1.5×"))
    return figures


@contextmanager
def _filled(count: int) -> Iterator[Stack]:
    with running(MACHINE) as stack:
        stack.manage("demo", "--jobs", str(count), timeout=3 * 3600)
        yield stack


def _ask_in_turns(clients: Mapping[int, httpx.Client], address: str) -> dict[int, list[float]]:
    """Return the seconds of each answer after the first three."""
    taken: dict[int, list[float]] = {count: [] for count in clients}
    for number in range(ROUNDS + 3):
        for count, client in clients.items():
            began = time.perf_counter()
            answer = client.get(address, headers=AS_OPERATOR if address == "/metrics" else {})
            spent = time.perf_counter() - began
            assert answer.status_code == httpx.codes.OK, (address, answer.status_code)
            if number >= 3:
                taken[count].append(spent)
    return taken


def _run_job(client: httpx.Client, name: str) -> float:
    """Return the seconds from the submission of a job until the API says that it has succeeded."""
    began = time.perf_counter()
    answer = client.post(JOBS, json={"file": FILE % (name, ROLE), "dialect": "openpai-v1"})
    assert answer.status_code == httpx.codes.CREATED, answer.text
    job = f"{JOBS}/{answer.json()['id']}"
    wait_for(lambda: client.get(job).json()["state"] == "SUCCEEDED", interval=0.01)
    return time.perf_counter() - began


def _idle_share(stack: Stack) -> float:
    """Return the CPU of all its programs over a minute, in percent of a core."""
    programs = stack.processes()
    before = sum(map(_cpu_seconds, programs))
    time.sleep(IDLE_S)
    return 100 * (sum(map(_cpu_seconds, programs)) - before) / IDLE_S


def _cpu_seconds(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system)
