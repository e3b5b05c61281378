"""What a person waits for: the first line after a click, and each line after it was written."""

from __future__ import annotations

import subprocess
import time
from typing import Final

from playwright.sync_api import Page, expect

from tests.bench.figures import Figure, percentile
from tests.browser import chromium
from tests.scenes import MACHINE, job_file
from tests.screenshots import sign_in
from tests.stack import Stack, running
from tests.waiting import wait_for

CLICKS: Final = 10
FIRST_LINE: Final = "echo first; sleep 2"
LINES: Final = 400
TALK: Final = 'while true; do echo "written $EPOCHREALTIME"; sleep 0.05; done'
PATIENCE_MS: Final = 30_000

WATCH: Final = """
() => {
  const began = Date.now();
  window.delays = [];
  new MutationObserver((changes) => {
    for (const row of changes.flatMap((change) => [...change.addedNodes])) {
      const written = 1000 * Number(/written (\\d+\\.\\d+)/.exec(row.textContent ?? "")?.[1]);
      if (written > began) requestAnimationFrame(() => window.delays.push(Date.now() - written));
    }
  }).observe(document.querySelector("[data-log=lines]"), { childList: true });
}
"""
"""A row counts when the frame that shows it is being painted; browser and job read the same clock."""


def measure() -> list[Figure]:
    """Both, in one Chromium on one console."""
    with chromium() as browser, running(MACHINE) as stack:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=stack.base_url)
        page = context.new_page()
        sign_in(page, stack)
        click_to_line(page)  # the first one also fills caches
        clicks = [click_to_line(page) for _click in range(CLICKS)]
        twice = [click_to_line(page, tab="Logs") for _click in range(CLICKS)]
        by_hand = [started_by_hand() for _start in range(CLICKS)]
        delays = line_to_screen(page, stack)
        context.close()
    start = 1000 * percentile(by_hand, 50)
    return [
        Figure("click → first log line, p50", 1000 * percentile(clicks, 50), "ms", start, "bash by hand"),
        Figure(
            "click → first log line, p95", 1000 * percentile(clicks, 95), "ms", start, "bash by hand", "≤ 1 s"
        ),
        Figure("the same with a second click, on Logs, p50", 1000 * percentile(twice, 50), "ms"),
        Figure("the same with a second click, on Logs, p95", 1000 * percentile(twice, 95), "ms"),
        Figure("line written → line on screen, p50", percentile(delays, 50), "ms"),
        Figure("line written → line on screen, p99", percentile(delays, 99), "ms", target="≤ 500 ms"),
    ]


def click_to_line(page: Page, *, tab: str = "") -> float:
    """Seconds from the click on Submit to the first line, on the page that opens or on its `tab`."""
    _type(page, job_file("first-line", command=FIRST_LINE))
    began = time.perf_counter()
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/jobs/*/", wait_until="commit")
    if tab:
        page.get_by_role("link", name=tab).click()
    page.locator(".log-line").first.wait_for(timeout=PATIENCE_MS)
    return time.perf_counter() - began


def started_by_hand() -> float:
    """Seconds until the same command, started by nobody but us, has written its line."""
    began = time.perf_counter()
    with subprocess.Popen(["bash", "-c", FIRST_LINE], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        taken = time.perf_counter() - began
        process.kill()
    return taken


def line_to_screen(page: Page, stack: Stack) -> list[float]:
    """Milliseconds for each of `LINES` lines of a job that writes twenty a second."""
    _type(page, job_file("talker", command=TALK))
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/jobs/*/")
    page.get_by_role("link", name="Logs").click()
    page.locator(".log-line").first.wait_for(timeout=PATIENCE_MS)
    page.evaluate(WATCH)
    wait_for(lambda: page.evaluate("() => window.delays.length") >= LINES, timeout=120, interval=0.5)
    delays: list[float] = page.evaluate("() => window.delays")
    return delays


def _type(page: Page, text: str) -> None:
    page.goto("/jobs/new")
    expect(page.locator(".cm-editor")).to_be_visible(timeout=PATIENCE_MS)
    page.keyboard.insert_text(text)
