"""A connection may take only so long, and so many bytes, to say what it wants."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import uvicorn

from console.server import protocol
from console.server.protocol import BoundedHttp
from tests.waiting import wait_for

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


@pytest.fixture
def port() -> Iterator[int]:
    config = uvicorn.Config(
        hello, host="127.0.0.1", port=0, http=BoundedHttp, lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_for(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def everything(connection: socket.socket) -> bytes:
    answer = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            answer += piece
    return answer


def test_request_head_without_an_end_is_timed_out(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    for sent in (b"", HEAD, HEAD + b"\r\n" + HEAD):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(sent)
            assert everything(connection).endswith(b"hi" if sent.count(b"GET") == 2 else b"")


def test_request_header_without_an_end_is_cut_off(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(HEAD + b"X-Long: ")
        with suppress(ConnectionError):
            for _piece in range(64):
                connection.sendall(b"x" * 65536)
        answer = everything(connection)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


def test_protocol_does_not_limit_slow_or_large_bodies(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    body = b"x" * (3 * protocol.HEAD_BYTES)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (len(body) + 1) + body
        )
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.sendall(b"x")
        connection.settimeout(10)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")
