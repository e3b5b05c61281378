"""The resolver of an attempt: its answers, whom it asks, and what a hostile job makes of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.node.network import dns_messages, resolver
from jobs.node.network.dns_messages import MalformedQuery, Query, Result, Unanswerable
from jobs.node.network.resolver import Resolver, Upstream

NAMES = {"job-worker-0": "10.66.0.2", "worker-0": "10.66.0.2", "job-worker-1": "10.66.0.3"}
A, PTR, AAAA = 1, 12, 28


def encode(name: str) -> bytes:
    return b"".join(bytes([len(part)]) + part.encode("latin-1") for part in name.split(".")) + b"\0"


def query_for(name: str, kind: int = A, number: int = 7) -> bytes:
    return struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + encode(name) + struct.pack(">HH", kind, 1)


def result_of(answer: bytes) -> Result:
    return Result(answer[3] & 0xF)


def records_in(answer: bytes) -> int:
    return int(struct.unpack_from(">H", answer, 6)[0])


class MachineResolver(asyncio.DatagramProtocol):
    """What the machine asks: it answers every name with 192.0.2.1, or with what it was told to."""

    def __init__(self, forged: Sequence[bytes] | None = None) -> None:
        self.asked: list[bytes] = []
        self.forged = forged

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.asked.append(data)
        answers = [answer_of(data)] if self.forged is None else self.forged
        for answer in answers:
            self.transport.sendto(answer, addr)

    async def serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack(">H", await reader.readexactly(2))
        found = answer_of(await reader.readexactly(size))
        writer.write(struct.pack(">H", len(found)) + found)
        writer.close()


def answer_of(packet: bytes) -> bytes:
    found = dns_messages.parse_query(packet)
    return dns_messages.answer(found, Result.OK, [dns_messages.address_record("192.0.2.1")])


@contextlib.asynccontextmanager
async def machine(forged: Sequence[bytes] | None = None) -> AsyncIterator[tuple[MachineResolver, int]]:
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server((made := MachineResolver(forged)).serve_connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport, _made = await loop.create_datagram_endpoint(lambda: made, local_addr=("127.0.0.1", port))
    try:
        yield made, port
    finally:
        transport.close()
        server.close()
        await server.wait_closed()


@contextlib.asynccontextmanager
async def serving(upstream: Upstream) -> AsyncIterator[tuple[str, int]]:
    streams = socket.create_server(("127.0.0.1", 0))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    address = streams.getsockname()
    datagrams.bind(address)
    server = await resolver.serve(datagrams, streams, NAMES, upstream)
    try:
        yield address
    finally:
        server.close()


async def ask(address: tuple[str, int], *packets: bytes) -> list[bytes]:
    """Send queries by UDP, and return as many answers."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setblocking(False)
        asking.connect(address)
        for packet in packets:
            await loop.sock_sendall(asking, packet)
        async with asyncio.timeout(10):
            return [await loop.sock_recv(asking, 65535) for _packet in packets]


async def ask_by_stream(address: tuple[str, int], *packets: bytes) -> list[bytes]:
    reader, writer = await asyncio.open_connection(*address)
    for packet in packets:
        writer.write(struct.pack(">H", len(packet)) + packet)
    async with asyncio.timeout(10):
        sizes_and_answers = [
            await reader.readexactly(struct.unpack(">H", await reader.readexactly(2))[0]) for _p in packets
        ]
    writer.close()
    return sizes_and_answers


def upstream(path: Path, *egress: str, port: int = 53, servers: Sequence[str] = ("127.0.0.1",)) -> Upstream:
    file = path / "resolv.conf"
    file.write_text("search x\n" + "".join(f"nameserver {server}\n" for server in servers), encoding="utf-8")
    return Upstream(egress, file, port)


# --- answers ---------------------------------------------------------------------------------------------


def test_resolver_answers_names_of_replicas_by_udp_and_tcp(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(upstream(tmp_path)) as address:
            queries = [query_for("Job-Worker-1"), query_for("worker-0", AAAA), query_for("worker-9")]
            queries.append(query_for("2.0.66.10.in-addr.arpa", PTR))
            answers = await ask_by_stream(address, *queries)
            found, none, refused, reverse = answers
            assert found.endswith(socket.inet_aton("10.66.0.3"))
            assert (result_of(none), records_in(none)) == (Result.OK, 0)
            assert result_of(refused) is Result.REFUSED
            assert reverse.endswith(encode("job-worker-0"))
            assert await ask(address, *queries) == answers

    asyncio.run(scenario())


def test_resolver_forwards_other_names_by_udp_and_tcp(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine() as (asked, port), serving(upstream(tmp_path, "internet", port=port)) as address:
            packet = query_for("example.org", number=4711)
            for (answer,) in (await ask(address, packet), await ask_by_stream(address, packet)):
                assert answer.endswith(socket.inet_aton("192.0.2.1"))
                assert answer[:2] == packet[:2]
            assert len(asked.asked) == 1
            assert (await ask(address, query_for("worker-0")))[0].endswith(socket.inet_aton("10.66.0.2"))
            assert len(asked.asked) == 1

    asyncio.run(scenario())


def test_resolver_fails_over_and_tells_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "TIMEOUT_S", 0.2)

    async def scenario() -> None:
        async with machine() as (_asked, port):
            one = upstream(tmp_path, "internet", port=port, servers=("127.0.0.2", "127.0.0.1"))
            async with serving(one) as address:
                assert result_of((await ask(address, query_for("example.org")))[0]) is Result.OK
        async with serving(one) as address:  # nobody is there any more
            assert result_of((await ask(address, query_for("example.org")))[0]) is Result.FAILED

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("egress", "expected"),
    [
        ((), ()),
        (("internet",), ("192.0.2.53", "198.51.100.1")),
        (("192.0.2.0/24:443", "198.51.100.1/32:53"), ("198.51.100.1",)),
        (("192.0.2.0/24:53",), ("192.0.2.53",)),
        (("192.0.2.0/24",), ("192.0.2.53",)),
        (("198.51.100.0/24:50-60",), ("198.51.100.1",)),
    ],
)
def test_upstream_admits_resolvers_that_egress_admits(
    tmp_path: Path, egress: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    servers = ("192.0.2.53", "no-address", "198.51.100.1")
    assert upstream(tmp_path, *egress, servers=servers).servers() == expected


def test_upstream_follows_changes_of_machine_and_its_absence(tmp_path: Path) -> None:
    made = upstream(tmp_path, "internet")
    assert made.servers() == ("127.0.0.1",)
    (tmp_path / "resolv.conf").unlink()
    assert made.servers() == ()
    upstream(tmp_path, servers=("192.0.2.1",))
    assert made.servers() == ("192.0.2.1",)


# --- hostile ---------------------------------------------------------------------------------------------


def test_resolver_ignores_forged_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "TIMEOUT_S", 0.3)
    forged = [b"", b"\0" * 11, query_for("example.org"), b"\x12\x34\x80" + b"\0" * 400]

    async def scenario() -> None:
        async with (
            machine(forged) as (_asked, port),
            serving(upstream(tmp_path, "internet", port=port)) as to,
        ):
            assert result_of((await ask(to, query_for("example.org")))[0]) is Result.FAILED

    asyncio.run(scenario())


def test_resolver_bounds_pending_queries_and_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "MOST_PENDING", 4)
    monkeypatch.setattr(resolver, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(resolver, "TIMEOUT_S", 0.5)

    async def scenario() -> None:
        async with machine(()) as (asked, port), serving(upstream(tmp_path, "internet", port=port)) as to:
            answers = await ask(to, *(query_for("example.org", number=n) for n in range(20)))
            assert {result_of(answer) for answer in answers} == {Result.FAILED}
            assert len(asked.asked) == 4
            idle = [await asyncio.open_connection(*to) for _n in range(3)]
            assert await idle[2][0].read() == b""
            assert await idle[0][0].read() == b""  # it has been idle for too long
            for _reader, writer in idle:
                writer.close()
            assert len(await ask_by_stream(to, query_for("worker-0"))) == 1

    asyncio.run(scenario())


PACKETS = st.one_of(
    st.binary(max_size=600),
    st.builds(
        lambda head, rest, at, junk: (head + rest)[:at] + junk + (head + rest)[at:],
        st.binary(min_size=12, max_size=12),
        st.sampled_from([query_for("worker-0")[12:], query_for("example.org")[12:], b"\xc0\x0c\0\1\0\1"]),
        st.integers(0, 40),
        st.binary(max_size=4),
    ),
    st.builds(query_for, st.from_regex(r"[a-zA-Z0-9.-]{1,60}", fullmatch=True).filter(str.isalnum)),
)


@given(PACKETS)
def test_resolver_never_raises_and_answers_like_the_query(packet: bytes) -> None:
    sent: list[bytes] = []
    made = Resolver(NAMES, Upstream((), Path("/nonexistent")))
    assert made._handle(packet, sent.append, by_stream=False) is None
    for answer in sent:
        assert answer[:2] == packet[:2]
        assert answer[2] & 0x80
        assert len(answer) <= len(packet) + 300
    try:
        found = dns_messages.parse_query(packet)
    except Unanswerable:
        assert not sent
    except MalformedQuery:
        assert result_of(sent[0]) is Result.MALFORMED
    else:
        assert not dns_messages.is_answer(packet, found, found.number)
        assert dns_messages.is_answer(sent[0], found, found.number)


@given(st.binary(max_size=600), st.integers(0, 65535))
def test_any_bytes_are_judged_as_an_answer_without_raising(packet: bytes, number: int) -> None:
    wanted = Query(number, 0, "example.org", A, True, query_for("example.org")[12:])
    assert dns_messages.is_answer(packet, wanted, number) in (True, False)
