"""A console and a job that serves something, for each test of the gateway."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from jobs.access import connections
from jobs.backends.sockets import open_connection
from jobs.models import Endpoint
from tests.factories import make_endpoint
from tests.jobs.access.gateway.served import Browser, Job, Served, console


@pytest.fixture(autouse=True)
def connects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever listens is the replica's own: these jobs are servers in the test's process."""

    async def connect(replica: int, host: str, port: int) -> socket.socket:
        return await open_connection(host, port)

    monkeypatch.setattr(connections, "connect", connect)


@pytest.fixture
def served(transactional_db: None) -> Iterator[Served]:
    """The whole console, gateway included, listening on loopback."""
    with console() as running:
        yield running


@pytest.fixture
def job() -> Iterator[Job]:
    """Something that a job serves."""
    with Job() as running:
        yield running


@pytest.fixture
def endpoint(transactional_db: None, job: Job) -> Endpoint:
    """The endpoint of a running job, where `job` listens."""
    return make_endpoint(port=job.port)


@pytest.fixture
def new_browser(served: Served) -> Iterator[Callable[[], Browser]]:
    """Browsers that share nothing."""
    browsers: list[Browser] = []

    def make() -> Browser:
        browsers.append(Browser(served.port))
        return browsers[-1]

    yield make
    for browser in browsers:
        browser.close()


@pytest.fixture
def browser(new_browser: Callable[[], Browser], endpoint: Endpoint) -> Browser:
    """The owner's browser, signed in to the console."""
    made = new_browser()
    made.sign_in(endpoint.replica.attempt.job.owner)
    return made


@pytest.fixture
def host(browser: Browser, endpoint: Endpoint, job: Job) -> str:
    """The endpoint's host, which the owner's browser has entered; the job has forgotten that."""
    assert browser.open(endpoint).status_code == 200
    job.seen.clear()
    return browser.host(endpoint)
