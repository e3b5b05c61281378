"""How large and how slow a request's body may be, over real sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Final
from urllib.parse import urlsplit

import pytest
from django.conf import settings as configured
from pytest_django import Settings

from jobs.live import bodies
from tests.serving import web_server

MIB = 1024 * 1024


@pytest.fixture
def at(settings: Settings, transactional_db: None) -> Iterator[tuple[str, int]]:
    settings.CONSOLE_BODY_SECONDS = 0.4
    with web_server() as url:
        yield "127.0.0.1", urlsplit(url).port or 0


def post(length: int, *headers: str, path: str = "/sign-in") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def answer_of(connection: socket.socket) -> bytes:
    """All that comes until the other side hangs up."""
    answer = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            answer += piece
    return answer


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ")[1])


def test_stalled_body_is_timed_out(at: tuple[str, int]) -> None:
    with ExitStack() as opened:
        connections = [opened.enter_context(socket.create_connection(at, timeout=60)) for _each in range(100)]
        for connection in connections:
            connection.sendall(post(10) + b"x")
        assert {status_of(answer_of(connection)) for connection in connections} == {408}


def test_body_sent_too_slowly_is_timed_out(at: tuple[str, int]) -> None:
    with socket.create_connection(at, timeout=0.1) as connection:
        connection.sendall(post(1000))
        answer = b""
        for _each in range(100):
            connection.sendall(b"x")
            with suppress(TimeoutError):
                answer = connection.recv(4096)
                break
        assert status_of(answer) == 408


def test_body_over_the_limit_is_refused_before_reading(at: tuple[str, int]) -> None:
    cookie = f"Cookie: {configured.SESSION_COOKIE_NAME}=whatever"
    for length, headers, path in (
        (20_000_000_000, (), "/sign-in"),
        (bodies.ANONYMOUS_BYTES + 1, (), "/sign-in"),
        (5 * MIB, (cookie,), "/jobs/new"),
        (33 * MIB, ("Authorization: Bearer jc_x",), "/api/console/v1/uploads/trees"),
    ):
        with socket.create_connection(at, timeout=60) as connection:
            connection.sendall(post(length, *headers, path=path))
            assert status_of(answer_of(connection)) == 413, path


def test_body_without_a_length_is_cut_off_at_the_limit(at: tuple[str, int]) -> None:
    head = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(at, timeout=60) as connection:
        connection.sendall(head)
        with suppress(ConnectionError):
            for _each in range(bodies.ANONYMOUS_BYTES // 4096 + 1):
                connection.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        assert status_of(answer_of(connection)) == 413


def test_larger_body_is_read_for_views_allowing_one(at: tuple[str, int]) -> None:
    with socket.create_connection(at, timeout=60) as connection:
        body = b"[" + b" " * 6 * MIB + b"]"
        head = post(
            len(body), "Authorization: Bearer jc_x", "Connection: close", path="/api/console/v1/uploads/trees"
        )
        connection.sendall(head + body)
        assert status_of(answer_of(connection)) == 401


def test_bodies_together_stay_within_their_memory_budget(
    at: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "AT_ONCE_BYTES", 1000)
    with (
        socket.create_connection(at, timeout=60) as first,
        socket.create_connection(at, timeout=60) as second,
    ):
        first.sendall(post(2000) + b"x" * 900)
        second.sendall(post(2000) + b"x" * 900)
        assert {status_of(answer_of(first)), status_of(answer_of(second))} == {503, 408}


def test_sender_answered_early_is_disconnected(at: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.server.protocol.LINGER_SECONDS", 0.3)
    head = post(1_000_000, "Authorization: Bearer jc_x", path="/api/console/v1/uploads/packs")
    with socket.create_connection(at, timeout=60) as connection:
        connection.sendall(head + b"x")
        assert status_of(answer_of(connection)) == 401


VENDORS: Final = {
    "PAI-DLC": ("/api/v1/jobs", "Code", "RequestEntityTooLarge", "RequestTimeout", "ServiceUnavailable"),
    "AIHC v1": ("/api/v1/aijobs", "code", "EntityTooLarge", "RequestTimeout", "ServiceUnavailable"),
    "AIHC v2": ("/?action=CreateJob", "code", "EntityTooLarge", "RequestTimeout", "ServiceUnavailable"),
    "OpenPAI": (
        "/rest-server/api/v2/jobs",
        "code",
        "InvalidParametersError",
        "RequestTimeoutError",
        "UnknownError",
    ),
}
"""An address of each API; the key of the code in its errors; its codes of bodies too large, slow, many."""

EACH_VENDOR: Final = pytest.mark.parametrize("vendor", VENDORS)


def error_of(answer: bytes, key: str) -> tuple[int, str]:
    """Return status and code of a vendor's error."""
    head, _blank, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower()
    assert b"connection: close" in head.lower()
    assert f"content-length: {len(body)}".encode() in head.lower()
    error = json.loads(body)
    assert error[{"Code": "Message", "code": "message"}[key]]
    return status_of(answer), error[key]


@EACH_VENDOR
def test_body_over_the_limit_is_refused_as_vendor_does(at: tuple[str, int], vendor: str) -> None:
    path, key, code, _slow, _many = VENDORS[vendor]
    with socket.create_connection(at, timeout=60) as connection:
        connection.sendall(post(20_000_000_000, "X-API-Version: v2", path=path))
        assert error_of(answer_of(connection), key) == (413, code)


@EACH_VENDOR
def test_stalled_body_is_timed_out_as_vendor_does(at: tuple[str, int], vendor: str) -> None:
    path, key, _large, code, _many = VENDORS[vendor]
    with socket.create_connection(at, timeout=60) as connection:
        connection.sendall(post(10, "X-API-Version: v2", path=path) + b"x")
        assert error_of(answer_of(connection), key) == (408, code)


@EACH_VENDOR
def test_body_beyond_memory_budget_is_refused_as_vendor_does(
    at: tuple[str, int], monkeypatch: pytest.MonkeyPatch, vendor: str
) -> None:
    monkeypatch.setattr(bodies, "AT_ONCE_BYTES", 1000)
    path, key, _large, _slow, code = VENDORS[vendor]
    with socket.create_connection(at, timeout=60) as connection:
        connection.sendall(post(2000, "X-API-Version: v2", path=path) + b"x" * 1500)
        assert error_of(answer_of(connection), key) == (503, code)
