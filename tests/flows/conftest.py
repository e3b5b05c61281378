"""One real console for all flows, a browser, and a page that is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import httpx
import pytest
from playwright.sync_api import Browser, Page, StorageState

from jobs.states import LIVE, State
from tests.browser import chromium, watched
from tests.scenes import MACHINE, fill
from tests.screenshots import sign_in
from tests.stack import Stack, running
from tests.waiting import wait_for

JOBS = "/api/console/v1/jobs"
UNFINISHED = sorted({*LIVE, State.QUEUED})


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


@pytest.fixture(scope="module")
def caller(stack: Stack) -> Iterator[httpx.Client]:
    """Whoever tidies up between the flows."""
    with closing(stack.client()) as client:
        yield client


@pytest.fixture(scope="module")
def sign_in_once(browser: Browser, stack: Stack) -> Callable[[], StorageState]:
    """Sign the admin in, once for several tests: hashing a password is slow on purpose."""
    kept: StorageState = {"cookies": [], "origins": []}

    def state() -> StorageState:
        sent = {cookie["name"]: cookie["value"] for cookie in kept["cookies"]}
        with httpx.Client(base_url=stack.base_url, cookies=sent, trust_env=False) as client:
            is_in = client.get("/").status_code == httpx.codes.OK
        if not is_in:  # not yet, or a test has signed out
            context = browser.new_context(base_url=stack.base_url)
            sign_in(context.new_page(), stack)
            kept.update(context.storage_state())
            context.close()
        return kept

    return state


@pytest.fixture
def page(browser: Browser, stack: Stack, sign_in_once: Callable[[], StorageState]) -> Iterator[Page]:
    """Signed in; the test fails when a script does or the content security policy is violated."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900},
        locale="en-GB",
        base_url=stack.base_url,
        storage_state=sign_in_once(),
    )
    with watched(context) as opened:
        opened.goto("/")
        yield opened
    context.close()


@pytest.fixture(autouse=True)
def _its_jobs_go_with_it(request: pytest.FixtureRequest) -> Iterator[None]:
    """A flow's jobs hold nothing when the next one begins, of the machine or of what one person may have."""
    if "scenes" in request.fixturenames:
        request.getfixturevalue("scenes")
    if "stack" not in request.fixturenames:
        yield
        return
    caller: httpx.Client = request.getfixturevalue("caller")
    before = _unfinished(caller)
    yield
    for job in _unfinished(caller) - before:
        with suppress(httpx.HTTPStatusError):  # it has just ended
            caller.post(f"{JOBS}/{job}/stop").raise_for_status()
    wait_for(lambda: _unfinished(caller) <= before, interval=0.1)


def _unfinished(caller: httpx.Client) -> set[str]:
    answer = caller.get(JOBS, params={"state": UNFINISHED, "limit": 200}).raise_for_status()
    return {row["id"] for row in answer.json()["jobs"]}
