"""Large logs: all of one by the API, beside a file from a bare ASGI application; the end of one on its page.

`BENCH_LOG_GB` says how large the log on the page is (10).
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Final

import httpx
from playwright.sync_api import Page

from tests.bench.figures import Figure, percentile
from tests.bench.programs import serve_bare
from tests.browser import chromium
from tests.scenes import job_file, submit
from tests.screenshots import sign_in
from tests.stack import Stack, running
from tests.waiting import wait_for

READ_BYTES: Final = 1_000_000_000
SHOWN_BYTES: Final = int(os.environ.get("BENCH_LOG_GB", "10")) * 1_000_000_000
FEW_BYTES: Final = 10_000
ROUNDS: Final = 5
LOOKS: Final = 20
PIECE: Final = 1 << 18
PATIENCE_S: Final = 1800
LINE: Final = "2026-11-26 22:40:13 step=4711 loss=0.693147 lr=1e-4 tokens/s=123456"
FILE: Final = "BENCH_FILE"
BARE: Final = "a file from a bare ASGI application"
ENVIRON: Final = {
    "CONSOLE_LOCAL": json.dumps({"engine": "none", "allow_plain": True, "log_mib": 20_000, "log_mib_s": 0}),
    "CONSOLE_LOG_CAP_MIB": "20000",
}


def measure() -> list[Figure]:
    """Write the logs by jobs, and read them."""
    with running(ENVIRON) as stack:
        token = json.loads(stack.manage("issue_token", "admin"))["token"]
        read, few, many = (_write_log(stack, token, size) for size in (READ_BYTES, FEW_BYTES, SHOWN_BYTES))
        return [*_read(stack, token, read), *_show(stack, few, many)]


def _write_log(stack: Stack, token: str, size: int) -> str:
    """Return the job whose log has so many bytes."""
    job = submit(stack.client(), job_file("writer", command=f"yes '{LINE}' | head -c {size}"))
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=stack.base_url, headers=headers, trust_env=False) as client:
        wait_for(
            lambda: client.get(f"/api/console/v1/jobs/{job}").json()["state"] == "SUCCEEDED",
            PATIENCE_S,
            interval=0.5,
        )
    return job


def _read(stack: Stack, token: str, job: str) -> Iterator[Figure]:
    ours = f"{stack.base_url}/api/console/v1/jobs/{job}/logs?role=task_1&index=0&download=true"
    with (
        tempfile.NamedTemporaryFile(dir="/var/tmp") as file,
        serve_bare("tests.bench.logs:bare", **{FILE: file.name}) as theirs,
    ):
        line = f"{LINE}\n".encode()
        block = line * (PIECE // len(line))
        while file.tell() < READ_BYTES:
            file.write(block)
        file.truncate(READ_BYTES)
        taken: dict[str, list[float]] = {ours: [], theirs: []}
        for url in [*taken] * ROUNDS:
            taken[url].append(READ_BYTES / 2**20 / _download(url, token))
    rate, bare = (median(each) for each in taken.values())
    yield Figure("1 GB of log by the API", rate, "MiB/s", bare, BARE, "≥ 0.5×")


def _download(url: str, token: str) -> float:
    """Return the seconds until all bytes are there."""
    headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
    began, size = time.perf_counter(), 0
    with httpx.stream("GET", url, headers=headers, timeout=PATIENCE_S, trust_env=False) as answer:
        for piece in answer.raise_for_status().iter_raw():
            size += len(piece)
    assert size == READ_BYTES, size
    return time.perf_counter() - began


async def bare(scope: dict[str, object], receive: object, send: object) -> None:
    """Send the file; an ASGI application."""
    if scope["type"] != "http":
        return
    assert callable(send)
    with open(os.environ[FILE], "rb") as file:  # noqa: ASYNC230, PTH123  # it is in memory
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while piece := file.read(PIECE):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _show(stack: Stack, few: str, many: str) -> Iterator[Figure]:
    with chromium() as browser:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=stack.base_url)
        page = context.new_page()
        sign_in(page, stack)
        looks: list[Callable[[], float]] = [partial(_look, page, job) for job in (many, few)]
        for look in looks:
            look()  # fills caches
        taken = [[1000 * look() for look in looks] for _ in range(LOOKS)]
        context.close()
    long, short = (percentile(each, 95) for each in zip(*taken, strict=True))
    what = f"end of a log of {SHOWN_BYTES / 1e9:.0f} GB on its page, p95"
    yield Figure(what, long, "ms", short, f"of {FEW_BYTES:,} bytes", "≤ 300 ms")


def _look(page: Page, job: str) -> float:
    """Return the seconds from the address to the log's last line."""
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(f"/jobs/{job}/?tab=logs", wait_until="commit")
    page.locator(".log-line").last.wait_for()
    return time.perf_counter() - began
