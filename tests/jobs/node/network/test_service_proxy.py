"""The service address over real sockets: one request of a connection, with the identity of its replica."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.node.network import service_proxy
from jobs.node.network.request_head import MAX_BODY
from jobs.node.network.service_proxy import ServiceProxy

KEY = "i-job-1"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
GET = b"GET /v1/job HTTP/1.1\r\nHost: x\r\n\r\n"

Send = Callable[[bytes], Awaitable[bytes]]


class Console:
    """What listens at the console's socket: it remembers what each connection said."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.answers = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"content-length: "))
        self.heard.append(head + await reader.readexactly(length))
        if self.answers:
            writer.write(ANSWER)
            await writer.drain()
        writer.close()


class Place:
    """A proxy between connections from 127.0.0.1, which is replica 7, and a console."""

    def __init__(self, folder: Path) -> None:
        self.console = Console()
        self._path = folder / "job-service.sock"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self.port = int(self._listening.getsockname()[1])
        self._proxy = ServiceProxy(self._listening, KEY, {"127.0.0.1": 7}, self._path)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self.console.serve, self._path)
        self._serving = asyncio.ensure_future(self._proxy.serve())
        return self

    async def __aexit__(self, *_problem: object) -> None:
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)
        self._server.close()
        await self._server.wait_closed()

    async def close_console(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def send(self, data: bytes, address: str = "127.0.0.1") -> bytes:
        """Send bytes, and return all that comes back."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        writer.write(data)
        try:
            async with asyncio.timeout(60):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.transport.abort()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with Place(tmp_path) as made:
        yield made


async def test_request_reaches_console_with_its_identity(place: Place) -> None:
    head = b"POST /v1/x HTTP/1.1\r\nHost: 169.254.77.1\r\nContent-Length: 4\r\nJob-Console-Replica: 1"
    assert await place.send(head + b"\r\n\r\nbody") == ANSWER
    (heard,) = place.console.heard
    assert heard == (
        b"POST /v1/x HTTP/1.1\r\nhost: job-console\r\nconnection: close\r\ncontent-length: 4\r\n"
        b"job-console-attempt: i-job-1\r\njob-console-replica: 7\r\n\r\nbody"
    )


async def test_bytes_after_a_request_are_no_second_one(place: Place) -> None:
    assert await place.send(GET + GET + b"x" * 100_000) == ANSWER
    assert len(place.console.heard) == 1


async def test_unknown_address_is_not_answered(place: Place) -> None:
    assert await place.send(GET, "127.0.0.9") == b""
    assert place.console.heard == []


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 40_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1) + b"x" * 100_000, 413),
        (b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
    ],
)
async def test_refusal_is_json_and_reaches_nobody(place: Place, request_bytes: bytes, status: int) -> None:
    answer = await place.send(request_bytes)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b'{"error": "' in answer
    assert place.console.heard == []


async def test_expected_continue_is_sent_before_the_body(place: Place) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"
    assert await place.send(head + b"x") == b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER


async def test_absent_console_is_a_503(place: Place) -> None:
    place.console.answers = False
    assert (await place.send(GET)).startswith(b"HTTP/1.1 503 ")
    await place.close_console()
    assert (await place.send(GET)).startswith(b"HTTP/1.1 503 ")


async def test_silent_connections_are_ended_and_keep_nobody_out_for_long(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_proxy, "REQUEST_S", 0.1)
    silent = [place.send(b"GET / HTTP/1.1\r\n") for _ in range(service_proxy.MAX_CONNECTIONS + 4)]
    answers = await asyncio.gather(*silent, place.send(GET))
    assert answers == [*[b""] * len(silent), ANSWER]


PIECES = st.sampled_from(
    [
        *(GET, b"GET ", b"POST /v1/job HTTP/1.1\r\n", b"Host: x\r\n", b"Content-Length: 3\r\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"abc", b"3\r\nabc\r\n0\r\n\r\n", b"\n", b"\r\n", b"\r\n\r\n"),
        b"Job-Console-Attempt: x\r\n",
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, max_size=8).map(b"".join))
def test_any_bytes_are_at_most_one_request(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    async def run() -> list[bytes]:
        async with Place(tmp_path_factory.mktemp("console")) as place:
            reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
            writer.write(data)
            writer.write_eof()
            await reader.read()
            writer.transport.abort()
            return place.console.heard

    heard = asyncio.run(run())
    assert len(heard) <= 1
    assert all(
        each.count(b"job-console-attempt: i-job-1\r\njob-console-replica: 7\r\n") == 1 for each in heard
    )
