"""Rights end while something is open: it ends too, within a minute (here: within seconds)."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from django.contrib.sessions.models import Session
from pytest_django import Settings
from websockets.exceptions import ConnectionClosed

from jobs.access.gateway import rechecks
from jobs.models import Endpoint, Job, Replica
from jobs.states import ReplicaState, State
from quotas.models import Membership, User
from tests.factories import make_endpoint
from tests.jobs.access.gateway.served import Browser, Served
from tests.jobs.access.gateway.served import Job as ServedJob
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _looked_at_often(settings: Settings) -> None:
    settings.CONSOLE_GATEWAY_RECHECK_SECONDS = 0.1


def disable() -> None:
    User.objects.update(is_active=False)


def sign_out() -> None:
    Session.objects.all().delete()


def change_password() -> None:
    user = User.objects.get()
    user.set_password("another")
    user.save()


def leave_workspace() -> None:
    Membership.objects.all().delete()


def end_job() -> None:
    Job.objects.update(state=State.STOPPED)


def end_replica() -> None:
    Replica.objects.update(state=ReplicaState.SUCCEEDED)


def begin_the_next_run() -> None:
    Job.objects.update(run_number=2)


def begin_the_next_attempt() -> None:
    Job.objects.update(attempt_number=2)


def delete_job() -> None:
    Job.objects.update(deleted_at=Job.objects.get().created_at)


def move_the_port() -> None:
    Endpoint.objects.update(port=1)


LOSSES = [
    disable,
    sign_out,
    change_password,
    leave_workspace,
    end_job,
    end_replica,
    begin_the_next_run,
    begin_the_next_attempt,
    delete_job,
    move_the_port,
]


@pytest.mark.parametrize("lose", LOSSES)
def test_gateway_socket_ends_when_the_right_is_lost(
    browser: Browser, host: str, job: ServedJob, lose: Callable[[], None]
) -> None:
    with browser.socket(host, "/socket") as socket:
        socket.send("still")
        assert socket.recv(10) == "still"
        lose()
        with pytest.raises(ConnectionClosed):
            socket.recv(10)
        assert socket.close_code == 1008
    assert wait_for(job.left.is_set)


@pytest.mark.parametrize("lose", [disable, sign_out, end_job])
def test_gateway_stream_ends_when_the_right_is_lost(
    browser: Browser, host: str, job: ServedJob, served: Served, lose: Callable[[], None]
) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies(host).items())
    sent = {"Host": f"{host}:{served.port}", "Cookie": cookie}
    url = f"http://127.0.0.1:{served.port}/events"
    with (
        httpx.Client(trust_env=False, timeout=60) as client,
        client.stream("GET", url, headers=sent) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines) == "data: first"
        lose()
        with pytest.raises(httpx.RemoteProtocolError):
            list(lines)
    assert wait_for(job.left.is_set)


def test_gateway_socket_survives_a_database_outage(
    browser: Browser, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import OperationalError  # noqa: PLC0415

    asked = []

    def away(*_anything: object) -> None:
        asked.append(True)
        raise OperationalError

    with browser.socket(host, "/socket") as socket:
        monkeypatch.setattr("jobs.access.gateway.visits.find_access", away)
        wait_for(lambda: len(asked) > 3)
        socket.send("still")
        assert socket.recv(10) == "still"
        assert browser.request("GET", host, "/").status_code == 503
        monkeypatch.setattr(rechecks, "LONGEST_TRUST_SECONDS", 0.0)
        with pytest.raises(ConnectionClosed):
            socket.recv(10)


def test_gateway_visit_is_refused_at_a_neighbour_endpoint(
    browser: Browser, host: str, endpoint: Endpoint, job: ServedJob
) -> None:
    neighbour = make_endpoint(port=job.port)
    browser.cookies(browser.host(neighbour)).update(browser.cookies(host))
    assert browser.request("GET", browser.host(neighbour), "/").status_code == 401
