"""One real console for all flows, a browser, and a page that is watched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import chromium, watched
from tests.scenes import MACHINE, fill
from tests.screenshots import sign_in
from tests.stack import Stack, running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    with running(MACHINE) as started:
        yield started


@pytest.fixture(scope="session")
def scenes(stack: Stack) -> dict[str, str]:
    return fill(stack)


@pytest.fixture
def page(browser: Browser, stack: Stack) -> Iterator[Page]:
    """Signed in; the test fails when a script does or the content security policy is violated."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, locale="en-GB", base_url=stack.base_url
    )
    with watched(context) as opened:
        sign_in(opened, stack)
        yield opened
    context.close()
