"""A browser for the whole session, and a site and a page for each test."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import chromium, watched
from tests.static.site import Site


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.streaming = False
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """Ends the test in failure when anything on the page violated the content security policy."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB", base_url=site.url)
    with watched(context) as opened:
        yield opened
    context.close()
