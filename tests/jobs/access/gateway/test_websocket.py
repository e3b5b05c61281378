"""WebSockets through the gateway: every message, subprotocol and close code, in both directions."""

from __future__ import annotations

from socket import SHUT_RDWR

import pytest
from pytest_django import Settings
from websockets.exceptions import ConnectionClosed

from jobs.models import Endpoint
from tests.jobs.access.gateway.served import Browser, Job
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def test_websocket_returns_text_and_bytes_of_every_size_unchanged(browser: Browser, host: str) -> None:
    messages: list[str | bytes] = ["", "你好 · 👋", b"", b"\x00\xff" * 500, "x" * 200_000, b"y" * (3 << 20)]
    with browser.socket(host, "/socket") as socket:
        for message in messages:
            socket.send(message)
            assert socket.recv(10) == message


def test_websocket_subprotocol_is_chosen_by_the_job(browser: Browser, host: str) -> None:
    with browser.socket(host, "/socket", subprotocols=["v9.other", "v2.kernel"]) as socket:
        assert socket.subprotocol == "v2.kernel"
    with browser.socket(host, "/socket") as socket:
        assert socket.subprotocol is None


@pytest.mark.parametrize("code", [1000, 1001, 1011, 3000, 4999])
def test_websocket_close_code_of_the_job_reaches_the_browser(browser: Browser, host: str, code: int) -> None:
    with browser.socket(host, "/socket") as socket:
        socket.send(f"close {code}")
        with pytest.raises(ConnectionClosed):
            socket.recv(10)
        assert (socket.close_code, socket.close_reason) == (code, "as you wish")


@pytest.mark.parametrize("code", [1000, 1001, 4321])
def test_websocket_close_code_of_the_browser_reaches_the_job(
    browser: Browser, host: str, job: Job, code: int
) -> None:
    with browser.socket(host, "/socket") as socket:
        socket.close(code)
    assert wait_for(job.left.is_set)
    assert job.closed_with == code


def test_websocket_of_a_vanished_browser_closes_at_the_job(browser: Browser, host: str, job: Job) -> None:
    with browser.socket(host, "/socket") as socket:
        socket.socket.shutdown(SHUT_RDWR)
    assert wait_for(job.left.is_set)
    assert job.closed_with in {1000, 1001}


def test_websocket_of_a_vanished_job_closes_as_bad_gateway(browser: Browser, host: str) -> None:
    with browser.socket(host, "/socket") as socket:
        socket.send("vanish")
        with pytest.raises(ConnectionClosed):
            socket.recv(10)
        assert socket.close_code == 1014


def test_websocket_refused_by_the_job_is_refused_before_handshake(browser: Browser, host: str) -> None:
    assert browser.socket_status(host, "/socket?refuse=1") == 403


def test_websocket_forwards_all_cookies_except_those_of_the_gateway(
    browser: Browser, host: str, job: Job
) -> None:
    browser.cookies(host)["theirs"] = "1"
    with browser.socket(host, "/socket?a=%2F"):
        assert job.seen[-1][1] == "/socket?a=%2F"
        assert job.headers()["cookie"] == "theirs=1"


def test_websocket_message_over_the_limit_closes_the_socket(
    browser: Browser, host: str, settings: Settings
) -> None:
    settings.CONSOLE_GATEWAY_MESSAGE_MIB = 1
    with browser.socket(host, "/socket") as socket:
        socket.send(b"x" * (2 << 20))
        with pytest.raises(ConnectionClosed):
            socket.recv(10)
        assert socket.close_code == 1009


def test_websocket_handshake_without_a_listener_is_refused(browser: Browser, host: str) -> None:
    Endpoint.objects.update(ready=False)
    wait_for(lambda: browser.socket_status(host, "/socket") == 503)
