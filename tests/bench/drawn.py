"""What a person waits for who opens a job's metrics: from the click on the tab until the curve is drawn."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Final

from playwright.sync_api import Page

from console.home import CHECKOUT
from tests.bench.figures import Figure, percentile
from tests.browser import chromium
from tests.scenes import MACHINE
from tests.screenshots import sign_in
from tests.stack import Stack, running

POINTS: Final = 1_000_000
FEW: Final = 41
CLICKS: Final = 10
REST_MS: Final = 500

DRAWN: Final = """
() => {
  const canvas = document.querySelector(".training-plot canvas");
  if (!canvas?.width) return false;
  return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((each) => each);
}
"""
"""The canvas has a pixel that is not empty."""


def measure() -> list[Figure]:
    """A long curve and a short one in turns, in one Chromium on one console."""
    with chromium() as browser, running(MACHINE) as stack:
        jobs = _make_jobs(stack)
        page = browser.new_context(
            viewport={"width": 1440, "height": 900}, base_url=stack.base_url
        ).new_page()
        sign_in(page, stack)
        for job in jobs:
            click_to_drawn(page, job)  # the first one also fills caches
        rounds = [[click_to_drawn(page, job) for job in jobs] for _click in range(CLICKS)]
    many, few = zip(*rounds, strict=True)
    beside = f"of {FEW} points"
    return [
        Figure(
            f"curve of {POINTS:,} points, click on Metrics → drawn, p{percent}",
            1000 * percentile(many, percent),
            "ms",
            1000 * percentile(few, percent),
            beside,
            "≤ 1 s",
        )
        for percent in (50, 95)
    ]


def click_to_drawn(page: Page, job: str) -> float:
    """Return the seconds from the click until the curve is on the canvas."""
    page.goto(f"/jobs/{job}/")
    page.wait_for_timeout(REST_MS)  # what the page before still fetches is not ours
    began = time.perf_counter()
    page.get_by_role("link", name="Metrics", exact=True).click()
    page.wait_for_function(DRAWN, polling="raf")
    return time.perf_counter() - began


def _make_jobs(stack: Stack) -> list[str]:
    made = subprocess.run(
        [sys.executable, "-m", "tests.bench.long_series", str(POINTS), str(FEW)],
        cwd=CHECKOUT,
        env=stack.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.split()[-2:]
