"""Terminals: Chromium typing, and whoever else comes to the socket."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from django.conf import LazySettings, settings
from django.test import Client
from django.urls import reverse
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from jobs.models import AccessSession, Event, Job
from jobs.states import State
from quotas.accounts.session_store import reference_of
from quotas.models import Membership, Role, User
from tests.jobs.access.gateway.served import CONSOLE, Browser, Served, console
from tests.jobs.access.terminal_gateway.conftest import EVERYWHERE, People, Place, shells
from tests.processes import count_processes
from tests.waiting import wait_for

pytestmark = pytest.mark.once


@pytest.fixture
def served(people: People, settings: LazySettings) -> Iterator[Served]:
    settings.CONSOLE_SSH_PORT = 0
    settings.CONSOLE_GATEWAY_RECHECK_SECONDS = 0.3
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, CONSOLE]
    with shells(), console() as running:
        yield running


class Screen(NamedTuple):
    """One view of a terminal."""

    socket: ClientConnection

    def told(self) -> dict[str, Any]:
        """The next thing that is said of the terminal itself."""
        while True:
            message = self.socket.recv(timeout=60)
            if isinstance(message, str):
                found: dict[str, Any] = json.loads(message)
                return found

    def until(self, text: str) -> str:
        """All that is shown up to and with `text`."""
        shown = b""
        while text.encode() not in shown:
            message = self.socket.recv(timeout=60)
            shown += message if isinstance(message, bytes) else b""
        return shown.decode()

    def type(self, text: str) -> None:
        self.socket.send(text.encode())


class Visitor:
    """Somebody's browser, without a screen."""

    def __init__(self, served: Served, user: User) -> None:
        self.browser = Browser(served.port)
        self.session = self.browser.sign_in(user)
        self._client = Client()
        self._client.force_login(user)

    def open(self, place: Place) -> str:
        """A new terminal's key; it belongs to the session of the browser."""
        answer = self._client.post(reverse("terminal_new", args=[place.job.public_id])).json()
        key = str(answer["key"])
        AccessSession.objects.filter(key=key).update(session_key=reference_of(self.session))
        return key

    @contextmanager
    def look(self, key: str, query: str = "", **headers: str) -> Iterator[Screen]:
        path = f"/terminals/{key}/socket?columns=90&rows=30{query}"
        with self.browser.socket(CONSOLE, path, headers or None) as socket:
            yield Screen(socket)

    def status(self, key: str, **headers: str) -> int:
        return self.browser.socket_status(CONSOLE, f"/terminals/{key}/socket", headers or None)


@pytest.fixture
def visit(served: Served) -> Iterator[Callable[[User], Visitor]]:
    """Browsers of whoever comes."""
    visitors: list[Visitor] = []

    def make(user: User) -> Visitor:
        visitors.append(Visitor(served, user))
        return visitors[-1]

    yield make
    for visitor in visitors:
        visitor.browser.close()


@pytest.fixture
def owner(visit: Callable[[User], Visitor], people: People) -> Visitor:
    return visit(people.owner)


@EVERYWHERE
def test_terminal_runs_typed_commands_in_the_job(owner: Visitor, place: Place) -> None:
    with owner.look(owner.open(place)) as screen:
        assert screen.told() == {"at": 0, "typing": True}
        screen.type("stty size; pwd; echo $TERM 中''文\r")
        shown = screen.until("xterm-256color 中文")
        assert "30 90" in shown
        assert place.home in shown
        screen.socket.send(json.dumps({"columns": 100, "rows": 40}))
        screen.type("stty size\r")
        screen.until("40 100")
        screen.type("exit\r")
        assert screen.told() == {"ended": "left"}
    wait_for(lambda: AccessSession.objects.get().why == "left")
    assert list(Event.objects.filter(kind="left").values_list("params__way", flat=True)) == ["terminal"]


def test_terminal_keeps_the_shell_and_resumes_at_the_last_position(owner: Visitor, place: Place) -> None:
    key = owner.open(place)
    with owner.look(key) as screen:
        screen.told()
        screen.type("kept=still; echo fir''st\r")
        seen = len(screen.until("first").encode())
    with owner.look(key, f"&from={seen}") as screen:
        assert screen.told() == {"at": seen, "typing": True}
        screen.type("echo $kept he''re\r")
        assert "first" not in screen.until("still here")
    with owner.look(key) as screen:
        assert screen.told()["at"] == 0
        assert "first" in screen.until("still here")


def test_terminal_lets_permitted_users_watch_without_typing(
    owner: Visitor, visit: Callable[[User], Visitor], people: People, place: Place
) -> None:
    key = owner.open(place)
    operator = visit(people.operator)
    with owner.look(key) as mine, operator.look(key) as theirs:
        assert mine.told()["typing"]
        assert theirs.told() == {"at": 0, "typing": False}
        theirs.type("touch /job/typed\r")
        theirs.socket.send(json.dumps({"columns": 10, "rows": 10}))
        mine.type("stty size; ls; echo do''ne\r")
        assert "typed" not in theirs.until("done")
        assert "30 90" in mine.until("done")


def test_terminal_refuses_other_users_and_origins(
    owner: Visitor, visit: Callable[[User], Visitor], served: Served, people: People, place: Place
) -> None:
    key = owner.open(place)
    for user in (people.member, people.stranger):
        assert visit(user).status(key) == 403
    assert owner.status(key, Origin=f"http://x.apps.localhost:{served.port}") == 403
    assert owner.status(key, Origin="null") == 403
    assert owner.status("0" * 32) == 403
    owner.browser.jar[CONSOLE].clear()
    assert owner.status(key) == 403


def test_terminal_socket_under_a_foreign_host_is_refused(
    owner: Visitor, served: Served, place: Place
) -> None:
    key, name = owner.open(place), settings.SESSION_COOKIE_NAME
    cookie = {"Cookie": f"{name}={owner.session}"}
    for host in ("rebound.example", "x.apps.localhost", "localhost.rebound.example", "0.0.0.0"):
        path = f"/terminals/{key}/socket"
        assert owner.browser.socket_status(host, path, cookie) in {400, 401, 403, 404}, host
    assert owner.status(key) == 101


def test_terminal_post_from_another_site_is_refused(owner: Visitor, place: Place) -> None:
    address = reverse("terminal_new", args=[place.job.public_id])
    answer = owner.browser.request("POST", CONSOLE, address)
    assert answer.status_code == 403
    assert not AccessSession.objects.exists()


@pytest.mark.parametrize("loss", ["disabled", "demoted", "signed out", "ended", "asked"])
def test_terminal_closes_when_the_right_is_lost(owner: Visitor, place: Place, loss: str) -> None:
    key = owner.open(place)
    with owner.look(key) as screen:
        screen.told()
        screen.type("sleep 603\r")
        wait_for(lambda: count_processes("sleep", "603"))
        match loss:
            case "disabled":
                User.objects.filter(pk=place.job.owner_id).update(is_active=False)
            case "demoted":
                Membership.objects.filter(user=place.job.owner).update(role=Role.VIEWER)
            case "signed out":
                Client().session.__class__(owner.session).flush()
            case "ended":
                Job.objects.filter(pk=place.job.pk).update(state=State.FAILED)
            case "asked":
                AccessSession.objects.update(end_asked_at="2026-01-01T00:00Z")
        assert _closes(screen.socket)
    wait_for(lambda: AccessSession.objects.exclude(ended_at=None).exists())
    wait_for(lambda: not count_processes("sleep", "603"))


def _closes(socket: ClientConnection) -> bool:
    """Whether it is closed, whatever is said before."""
    try:
        while True:
            socket.recv(timeout=60)
    except ConnectionClosed:
        return True
    except TimeoutError:
        return False


def test_terminal_with_endless_output_stays_usable(owner: Visitor, place: Place) -> None:
    key = owner.open(place)
    with owner.look(key) as screen:
        screen.told()
        screen.type("yes 0123456789\r")
        screen.until("0123456789")
        time.sleep(0.5)  # nobody reads: the shell is held back
    with owner.look(key) as screen:
        assert screen.told()["at"] >= 0
        screen.type("\x03")
        screen.type("echo sto''pped\r")
        screen.until("stopped")


def test_terminal_left_unshown_ends_after_a_while(
    owner: Visitor, place: Place, settings: LazySettings
) -> None:
    settings.CONSOLE_TERMINAL_KEEP_SECONDS = 0.3
    with owner.look(owner.open(place)) as screen:
        screen.told()
        screen.type("sleep 603\r")
        wait_for(lambda: count_processes("sleep", "603"))
    wait_for(lambda: not count_processes("sleep", "603"))
    wait_for(lambda: AccessSession.objects.get().why == "left")
