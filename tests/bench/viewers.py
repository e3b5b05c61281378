"""Many people who look at one log connect at the same moment, as after the loss of a web process."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Final

import aiohttp
import psutil

from tests.bench.figures import Figure, percentile
from tests.bench.programs import serve_bare
from tests.scenes import MACHINE, job_file, submit
from tests.stack import Stack, running
from tests.waiting import wait_for

COUNTS: Final = (500, 2000)
TRIES: Final = 3
LINES: Final = 150
TALK: Final = (
    f"for i in $(seq {LINES}); do echo line $i of a log that tells of a step, its loss and its rate; done; "
    "while true; do echo step at $EPOCHREALTIME; sleep 1; done"
)
LIMITS: Final = {"CONSOLE_STREAMS_PER_PERSON": "10000", "CONSOLE_CONNECTIONS_PER_ADDRESS": "10000"}
BARE: Final = "a bare ASGI application"


def measure() -> list[Figure]:
    """With one web process, and with one for each core; beside an application that sends the same bytes."""
    cores = os.cpu_count() or 1
    return [each for processes in dict.fromkeys((1, cores)) for each in _measure(processes)]


def _measure(processes: int) -> list[Figure]:
    with running({**MACHINE, **LIMITS, "CONSOLE_WEB_PROCESSES": str(processes)}) as stack:
        client = stack.client()
        job = submit(client, job_file("talker", command=TALK))
        page = f"/jobs/{job}/logs?role=task_1"
        wait_for(lambda: b"step at" in client.get(page).content, interval=0.2)
        path = f"/jobs/{job}/stream?log=task_1/0&offset=0"
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        asyncio.run(_connect(stack.base_url, path, cookie, 20))  # fills caches
        return [figure for count in COUNTS for figure in _figures(stack, path, cookie, count, processes)]


def _figures(stack: Stack, path: str, cookie: str, count: int, processes: int) -> list[Figure]:
    taken, spent, bare = [], [], []
    for _try in range(TRIES):
        before = _cpu_s(stack, processes)
        taken.append(asyncio.run(_connect(stack.base_url, path, cookie, count)))
        spent.append((_cpu_s(stack, processes) - before) / count)
        bare.append(_bare(count))
    web = f"{processes} web process" + ("es" if processes > 1 else "")
    target = "≤ 3 s" if count == COUNTS[0] and processes > 1 else ""
    return [
        Figure(
            f"{count:,} viewers of a log connect, {web}",
            percentile(taken, 50),
            "s",
            percentile(bare, 50),
            BARE,
            target,
        ),
        Figure(f"the same, CPU a viewer, {web}", 1000 * percentile(spent, 50), "ms"),
    ]


async def _connect(base_url: str, path: str, cookie: str, count: int) -> float:
    """Seconds until each of `count` connections has begun to receive the log."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=300)
    async with aiohttp.ClientSession(
        base_url=base_url, headers={"Cookie": cookie}, connector=connector, timeout=timeout
    ) as session:
        all_there = asyncio.Barrier(count)

        async def view() -> float:
            async with session.get(path) as answer:
                assert answer.status == 200, answer.status
                while b"event: log" not in await answer.content.readany():
                    assert not answer.content.at_eof()
                seen_at = time.perf_counter()
                await all_there.wait()  # until then, all stay
            return seen_at

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:  # when one fails, the others need not wait for it
            viewers = [group.create_task(view()) for _viewer in range(count)]
    return max(viewer.result() for viewer in viewers) - began


def _cpu_s(stack: Stack, processes: int) -> float:
    """Seconds of CPU of the web processes so far."""
    names = ["web", *(f"web-{number}" for number in range(2, processes + 1))]
    return sum(sum(psutil.Process(stack.pid(name)).cpu_times()[:2]) for name in names)


def _bare(count: int) -> float:
    with serve_bare("tests.bench.viewers:bare") as url:
        return asyncio.run(_connect(url, "/", "", count))


async def bare(scope: dict[str, object], receive: object, send: object) -> None:
    """Send one event of a log, and then nothing; an ASGI application."""
    if scope["type"] != "http":
        return
    assert callable(send)
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    event = b"event: log\ndata: " + b"x" * 12_000 + b"\n\n"
    await send({"type": "http.response.body", "body": event, "more_body": True})
    await asyncio.Event().wait()
