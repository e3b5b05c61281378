"""Terminals for clients with an access key: PAI-DLC's GetWebTerminal and its WebSocket frames."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from socket import create_connection
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from django.conf import LazySettings
from django.db.models.functions import Now
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from jobs.models import AccessSession, Job, TerminalTicket
from jobs.states import State
from quotas.accounts import tokens
from quotas.models import AccessToken, AuditEntry, Membership, Role, User
from tests.jobs.access.gateway.served import CONSOLE, Served, console
from tests.jobs.access.terminal_gateway.conftest import People, Place, shells
from tests.processes import count_processes
from tests.waiting import wait_for

pytestmark = pytest.mark.once


@pytest.fixture
def served(people: People, settings: LazySettings) -> Iterator[Served]:
    settings.CONSOLE_SSH_PORT = 0
    settings.CONSOLE_GATEWAY_RECHECK_SECONDS = 0.3
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, CONSOLE, "127.0.0.1"]
    with shells(), console() as running:
        yield running


@pytest.fixture
def request_url(served: Served, place: Place) -> Callable[..., httpx.Response]:
    """Call GetWebTerminal as somebody."""

    def call(user: User, scopes: tuple[str, ...] = ("read", "exec")) -> httpx.Response:
        token = tokens.issue(user, scopes=scopes, lifetime=timedelta(days=1))
        job = f"dlc{place.job.public_id}"
        path = f"/api/v1/jobs/{job}/pods/{job}-main-role-0/webterminal"
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(f"http://127.0.0.1:{served.port}{path}", headers=headers, trust_env=False)

    return call


@pytest.fixture
def url(request_url: Callable[..., httpx.Response], people: People) -> str:
    """A fresh URL of the owner's."""
    return url_of(request_url(people.owner))


def url_of(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["WebTerminalUrl"])


class Client:
    """A client that speaks the vendor's frames."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def send(self, **frame: Any) -> None:
        self.socket.send(json.dumps(frame))

    def type(self, text: str) -> None:
        self.send(operation="stdin", data=text)

    def until(self, text: str) -> str:
        shown = ""
        while text not in shown:
            frame = json.loads(self.socket.recv(timeout=60))
            assert set(frame) == {"operation", "data"}
            assert frame["operation"] == "stdout"
            shown += frame["data"]
        return shown

    def until_closed(self) -> tuple[int, str]:
        """The code and reason with which the terminal closes, whatever is shown before."""
        try:
            while True:
                self.socket.recv(timeout=60)
        except ConnectionClosed as closed:
            assert closed.rcvd is not None
            return closed.rcvd.code, closed.rcvd.reason


@contextmanager
def opened(url: str, **options: Any) -> Iterator[Client]:
    with connect(url, proxy=None, **options) as socket:
        yield Client(socket)


def status_of(url: str, **options: Any) -> int:
    """101, or the status with which the handshake is refused."""
    try:
        with opened(url, **options):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


def test_ticket_opens_a_terminal_in_the_vendors_frames(url: str, place: Place, served: Served) -> None:
    assert url.startswith(f"ws://127.0.0.1:{served.port}/terminals/tickets/")
    with opened(url) as client:
        client.send(operation="resize", cols=90, rows=30)
        client.type("stty size; pwd; echo 中''文\r")
        shown = client.until("中文")
        assert "30 90" in shown
        assert place.home in shown
        client.send(operation="resize", cols=100, rows=40)
        client.type("stty size\r")
        client.until("40 100")
        client.type("exit\r")
        assert client.until_closed() == (1000, "left")
    wait_for(lambda: AccessSession.objects.get().why == "left")


def test_ticket_terminal_is_recorded_as_a_session(url: str, place: Place) -> None:
    with opened(url) as client:
        client.type("echo he''re\r")
        client.until("here")
        entry = AccessSession.objects.get()
        assert (entry.kind, entry.user, entry.address) == ("terminal", place.job.owner, "127.0.0.1")
        assert entry.access_token == AccessToken.objects.get()
        row = AuditEntry.objects.get(action="enter")
        assert (row.actor, row.way) == (place.job.owner, "api")


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "no JSON",
        "[1]",
        "1",
        "[" * 100_000,
        "9" * 5000,
        '{"operation": "stdin"}',
        '{"operation": "stdin", "data": 5}',
        '{"operation": ["x"]}',
        '{"operation": "resize", "cols": -1, "rows": true}',
    ],
)
def test_wrong_frame_is_ignored(url: str, frame: str) -> None:
    with opened(url) as client:
        client.socket.send(frame)
        client.socket.send(frame.encode())
        client.type("echo still he''re\r")
        client.until("still here")


def test_ticket_works_once(url: str) -> None:
    assert status_of(url) == 101
    assert status_of(url) == 403
    assert AccessSession.objects.count() == 1


def test_ticket_is_stored_as_a_digest(url: str) -> None:
    ticket = urlsplit(url).path.split("/")[3]
    row = TerminalTicket.objects.get()
    assert ticket not in row.digest
    assert len(row.digest) == 64


def test_expired_ticket_is_refused_and_removed(
    url: str, request_url: Callable[..., httpx.Response], people: People
) -> None:
    TerminalTicket.objects.update(created_at=Now() - timedelta(seconds=31))
    assert status_of(url) == 403
    url_of(request_url(people.owner))
    assert TerminalTicket.objects.count() == 1


def test_unknown_ticket_is_refused(url: str) -> None:
    parts = url.split("/")
    assert status_of("/".join([*parts[:-2], "A" * 43, parts[-1]])) == 403


def test_ticket_under_a_foreign_host_is_refused(url: str, served: Served) -> None:
    foreign = url.replace(f"127.0.0.1:{served.port}", "rebound.example")
    assert status_of(foreign, sock=create_connection(("127.0.0.1", served.port))) in {400, 403, 404}


@pytest.mark.parametrize("loss", ["revoked", "disabled", "demoted", "ended"])
def test_ticket_is_worthless_without_the_right(url: str, place: Place, loss: str) -> None:
    lose(place, loss)
    assert status_of(url) == 403


@pytest.mark.parametrize("loss", ["revoked", "disabled", "demoted", "ended", "asked"])
def test_ticket_terminal_closes_when_the_right_is_lost(url: str, place: Place, loss: str) -> None:
    with opened(url) as client:
        client.type("sleep 607\r")
        wait_for(lambda: count_processes("sleep", "607"))
        lose(place, loss)
        client.until_closed()
    wait_for(lambda: not count_processes("sleep", "607"))


def lose(place: Place, loss: str) -> None:
    match loss:
        case "revoked":
            AccessToken.objects.update(revoked_at=Now())
        case "disabled":
            User.objects.filter(pk=place.job.owner_id).update(is_active=False)
        case "demoted":
            Membership.objects.filter(user=place.job.owner).update(role=Role.VIEWER)
        case "ended":
            Job.objects.filter(pk=place.job.pk).update(state=State.FAILED)
        case "asked":
            AccessSession.objects.update(end_asked_at=Now())


def test_web_terminal_is_for_those_who_may_enter(
    request_url: Callable[..., httpx.Response], people: People
) -> None:
    statuses = {
        user.username: request_url(user, tokens.SCOPES).status_code
        for user in (people.owner, people.member, people.operator, people.stranger)
    }
    assert statuses == {"owner": 200, "member": 403, "operator": 200, "stranger": 404}
    assert request_url(people.owner, ("read", "submit")).status_code == 403
    assert request_url(people.operator).status_code == 403  # a right from managing needs `admin` too


def test_web_terminal_of_ended_job_is_refused(
    request_url: Callable[..., httpx.Response], people: People, place: Place
) -> None:
    Job.objects.filter(pk=place.job.pk).update(state=State.FAILED)
    answer = request_url(people.owner)
    assert (answer.status_code, answer.json()["Code"]) == (409, "OperationConflict")
