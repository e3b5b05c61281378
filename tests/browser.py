"""Chromium for tests: found on this machine, started once, and watched for what a page must never do.

The pages forbid `eval`, so `page.wait_for_function` has to be given a function, not an expression.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--disable-component-update",
    "--no-first-run",
    "--disable-sync",
)
NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE_MS: Final = 60_000
"""How long what will come may take: two cores draw pages, check files and run jobs at once."""

WATCH_CSP: Final = """
document.addEventListener("securitypolicyviolation", (event) => {
  window.tellFault(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}`);
});
"""


def executable() -> str:
    """The machine's own Chromium; skips the test where there is none."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        say = pytest.fail if os.environ.get("REQUIRE_ALL") == "1" else pytest.skip
        say("no Chromium on this machine")
    return str(path)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium, headless."""
    path = executable()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS), timeout=PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield browser
        browser.close()


@contextmanager
def watched(context: BrowserContext) -> Iterator[Page]:
    """A page of which nothing violates its content security policy and no script fails.

    Messages that the browser itself writes about answers of the server (a 404, a lost connection) are no
    failures of a script.
    """
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    faults: list[str] = []
    page.expose_function("tellFault", lambda fault: faults.append(fault))  # noqa: PLW0108  # it wants a function
    page.add_init_script(WATCH_CSP)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.extend(_fault(message)))
    yield page
    assert not faults, faults


def _fault(message: ConsoleMessage) -> list[str]:
    from_browser = "Failed to load resource" in message.text or "net::" in message.text
    return [message.text] if message.type in {"error", "warning"} and not from_browser else []
