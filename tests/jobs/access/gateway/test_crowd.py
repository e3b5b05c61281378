"""A crowd at the endpoints keeps nobody from the console, and no person from their own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest
from pytest_django import Settings

from jobs.live.limits import EVERYBODY
from jobs.models import Endpoint
from quotas.models import Role
from tests.factories import make_membership, make_user
from tests.jobs.access.gateway import crowd
from tests.jobs.access.gateway.served import CONSOLE, Browser
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

CROWD = 3_000
NEEDED = CROWD + 3_000
PLACES = 400
PLACES_OF_A_PERSON = 200
MOST_BYTES_EACH = 48 * 1024


def test_gateway_user_at_the_connection_limit_leaves_places_for_others(
    browser: Browser, host: str, endpoint: Endpoint, settings: Settings, new_browser: Callable[[], Browser]
) -> None:
    settings.CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON = 2
    other = new_browser()
    someone = make_user()
    make_membership(someone, endpoint.replica.attempt.job.workspace, Role.ADMIN)
    other.sign_in(someone)
    other.open(endpoint)
    with browser.socket(host, "/socket"):
        with browser.socket(host, "/socket"):
            assert browser.socket_status(host, "/socket") == 503
            assert browser.request("GET", host, "/").status_code == 503
            assert other.request("GET", host, "/").status_code == 200
        assert wait_for(lambda: browser.request("GET", host, "/").status_code == 200)


@pytest.mark.once
def test_console_answers_during_three_thousand_gateway_connections(
    browser: Browser, host: str, settings: Settings
) -> None:
    from console import asgi  # noqa: PLC0415  # as in the fixture

    settings.CONSOLE_GATEWAY_CONNECTIONS = PLACES
    settings.CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON = PLACES_OF_A_PERSON
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies(host).items())
    where = [str(browser.port), f"{host}:{browser.port}", cookie, str(CROWD)]
    before = psutil.Process().memory_info().rss
    with (
        many_descriptors(),
        subprocess.Popen(
            [sys.executable, crowd.__file__, *where], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as program,
    ):
        assert program.stdout is not None
        answered = json.loads(program.stdout.readline())
        taken = asgi._gateway.open_requests._open[EVERYBODY]
        grown = psutil.Process().memory_info().rss - before
        took = [time_of(browser, path) for path in ("/livez", "/jobs/") * 10]
        program.communicate()
    assert answered["held"] == CROWD / len(crowd.KINDS)
    assert PLACES_OF_A_PERSON / 2 <= taken <= PLACES_OF_A_PERSON
    assert answered["503"] > CROWD / len(crowd.KINDS)
    assert set(answered) <= {"101", "200", "401", "503", "held"}, answered
    assert sorted(took)[-2] < 1.0, took
    assert grown / CROWD < MOST_BYTES_EACH
    assert wait_for(lambda: browser.request("GET", host, "/").status_code == 200)


@contextmanager
def many_descriptors() -> Iterator[None]:
    """As many files as the crowd needs, here and in its program; skips the test where that is not allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < NEEDED:
        pytest.skip(f"{NEEDED} file descriptors are needed, and {hard} allowed")
    if soft != resource.RLIM_INFINITY and soft < NEEDED:
        resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def time_of(browser: Browser, path: str) -> float:
    began = time.perf_counter()
    assert browser.get(CONSOLE, path).status_code == 200
    return time.perf_counter() - began
