"""The New job page: how long the server takes for it, what it weighs, how soon what is typed is checked."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from typing import Final

import httpx
import psutil
from playwright.sync_api import Page, Response

from tests.bench.figures import Figure, percentile
from tests.browser import chromium
from tests.scenes import MACHINE
from tests.screenshots import sign_in
from tests.stack import Stack, running

TIMES: Final = 100
UNCOUNTED: Final = 10
PAINTS: Final = 10
KB: Final = 1000
OF_THE_EDITOR: Final = ("/vendor/codemirror", "/console/editor")
SHOWN: Final = """
() => performance.getEntriesByType("paint").find((each) => each.name === "first-contentful-paint")?.startTime
"""


def measure() -> list[Figure]:
    """All of it, in one Chromium on one console."""
    with chromium() as browser, running(MACHINE) as stack:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=stack.base_url)
        page = context.new_page()
        sign_in(page, stack)
        weight = _weight(page)
        paints = [_first_paint(page) for _time in range(PAINTS)]
        token = page.locator('meta[name="csrf-token"]').get_attribute("content") or ""
        text = page.locator("#text").input_value()
        with _client(page, stack, token) as client:
            web = psutil.Process(stack.pid("web"))
            worked = _cpu(web)
            shown = _times(lambda: client.get("/jobs/new"))
            worked = (_cpu(web) - worked) / (TIMES + UNCOUNTED)
            beside = _times(lambda: client.get("/livez"))
            read = _times(lambda: client.post("/jobs/form/read", data={"text": text}))
            base = json.dumps({"name": "job"})
            fields = {"text": text, "form-shown": base, "name": "another"}
            changed = _times(lambda: client.post("/jobs/form/change", data=fields))
        context.close()
    idle = 1000 * percentile(beside, 50)
    checked, said = 1000 * percentile(read, 95), 1000 * percentile(changed, 95)
    return [
        Figure("form page, p50", 1000 * percentile(shown, 50), "ms", idle, "GET /livez"),
        Figure("form page, p95", 1000 * percentile(shown, 95), "ms", idle, "GET /livez", "≤ 80 ms"),
        Figure("form page, CPU of the web process", 1000 * worked, "ms"),
        Figure("form page with all but the editor", weight / KB, "KB gzipped", target="≤ 250 KB"),
        Figure("form page, first paint, p50", percentile(paints, 50), "ms"),
        Figure("text → checked, and the form of it, p95", checked, "ms", target="≤ 150 ms"),
        Figure("field → said in the text, p95", said, "ms", target="≤ 150 ms"),
    ]


def _weight(page: Page) -> int:
    """Bytes of the page and everything that it loads but the editor, each as gzip packs it."""
    loaded: set[str] = set()

    def note(response: Response) -> None:
        if response.ok and response.request.method == "GET":
            loaded.add(response.url)

    page.goto("about:blank")  # what the page before still asked for is not this one's
    page.on("response", note)
    page.goto("/jobs/new", wait_until="networkidle")
    page.remove_listener("response", note)
    wanted = [url for url in loaded if not any(part in url for part in OF_THE_EDITOR)]
    return sum(len(gzip.compress(page.request.get(url).body())) for url in wanted)


def _first_paint(page: Page) -> float:
    """Milliseconds from asking for the page to the first thing on it, with what the browser has kept."""
    page.goto("/jobs/new", wait_until="load")
    page.wait_for_function(SHOWN)
    return float(page.evaluate(SHOWN))


def _client(page: Page, stack: Stack, token: str) -> httpx.Client:
    """Somebody who is signed in, without a browser's own time."""
    cookies = {each["name"]: each["value"] for each in page.context.cookies()}
    headers = {"X-CSRFToken": token, "Accept": "application/json, text/html"}
    return httpx.Client(base_url=stack.base_url, cookies=cookies, headers=headers)


def _cpu(process: psutil.Process) -> float:
    """Seconds that it has computed; says what a page costs also where others compute."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _times(ask: Callable[[], httpx.Response]) -> list[float]:
    """Seconds of each of `TIMES` requests; the first ones fill caches and don't count."""
    taken = []
    for number in range(TIMES + UNCOUNTED):
        began = time.perf_counter()
        ask().raise_for_status()
        if number >= UNCOUNTED:
            taken.append(time.perf_counter() - began)
    return taken
