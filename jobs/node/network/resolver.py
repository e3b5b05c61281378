"""The resolver of an attempt: it knows the replicas' names, and asks the machine's resolvers for others.

It listens in the router, and asks from the host's network, as far as the job may reach the internet or the
machine's resolvers.  A job may send it anything: what it has under way and what it reads are bounded.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
from collections.abc import Callable, Coroutine, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, cast

from jobs.node.network import dns_messages
from jobs.node.network.dns_messages import Kind, MalformedQuery, Query, Result, Unanswerable
from jobs.node.network.rules import INTERNET, EgressRule

PORT: Final = 53

MOST_PENDING: Final = 128
"""Queries to the machine's resolvers at a time; more are answered that it failed."""

MOST_CONNECTIONS: Final = 16
TIMEOUT_S: Final = 2.0
"""For each of the machine's resolvers, and for the next query of a connection."""

_MOST_SERVERS: Final = 3
_RESOLV_CONF: Final = Path("/etc/resolv.conf")
_LENGTH: Final = struct.Struct(">H")

Address = tuple[Any, ...]
Send = Callable[[bytes], None]


class Upstream:
    """The machine's own resolvers, as far as the egress rules of a job admit them."""

    def __init__(self, egress: Sequence[str], path: Path = _RESOLV_CONF, port: int = PORT) -> None:
        self._egress, self._path, self.port = tuple(egress), path, port
        self._version: tuple[int, int] | None = None
        self._servers: tuple[str, ...] = ()

    def servers(self) -> tuple[str, ...]:
        """Return their addresses; none where other names are refused."""
        try:
            now = self._path.stat()
            if (version := (now.st_ino, now.st_mtime_ns)) != self._version:
                text = self._path.read_text(encoding="utf-8", errors="replace")
                self._version, self._servers = version, tuple(filter(self._admits, _name_servers(text)))
        except OSError:
            self._version, self._servers = None, ()
        return self._servers

    def _admits(self, server: str) -> bool:
        return any(
            rule == INTERNET or EgressRule.parse(rule).admits(server, self.port) for rule in self._egress
        )


def _name_servers(text: str) -> list[str]:
    lines = (line.split() for line in text.splitlines())
    found = [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]
    return [server for server in found if _is_address(server)][:_MOST_SERVERS]


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


class Resolver(asyncio.DatagramProtocol):
    """Answers queries; `names` maps the names of the replicas to their addresses.

    Of the names of one address the first is that by which it is known.
    """

    def __init__(self, names: Mapping[str, str], upstream: Upstream) -> None:
        self._names, self._upstream = names, upstream
        self._reverse: dict[str, str] = {}
        for name, address in names.items():
            self._reverse.setdefault(dns_messages.reverse_name(address), name)
        self._transport: asyncio.DatagramTransport | None = None
        self._is_full = False
        self._pending: set[asyncio.Task[None]] = set()
        self._connections = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where answers go."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def pause_writing(self) -> None:
        """Drop answers: the job does not read them."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Answer again."""
        self._is_full = False

    def error_received(self, exc: Exception) -> None:
        """Go on: a replica that is gone is not waited for."""

    def datagram_received(self, data: bytes, addr: Address) -> None:
        """Answer a query, now or once somebody else has answered it."""

        def send(answer: bytes) -> None:
            if self._transport is not None and not self._is_full and not self._transport.is_closing():
                self._transport.sendto(answer, addr)

        if (asking := self._handle(data, send, by_stream=False)) is not None:
            task = asyncio.get_running_loop().create_task(asking)
            self._pending.add(task)
            task.add_done_callback(self._pending.discard)

    async def serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the queries of a connection, one after the other."""
        self._connections += 1
        try:
            if self._connections <= MOST_CONNECTIONS:
                await self._answer_all(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
            pass  # of the job's making
        finally:
            self._connections -= 1
            writer.close()

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            packet = await _read_message(reader)
            if (asking := self._handle(packet, _message_writer(writer), by_stream=True)) is not None:
                await asking
            await asyncio.wait_for(writer.drain(), TIMEOUT_S)

    def close(self) -> None:
        """Ask nobody any more."""
        for task in self._pending:
            task.cancel()
        if self._transport is not None:
            self._transport.close()

    def _handle(self, packet: bytes, send: Send, *, by_stream: bool) -> Coroutine[Any, Any, None] | None:
        """Answer what is known here; return what asks for the rest."""
        try:
            query = dns_messages.parse_query(packet)
        except Unanswerable:
            return None
        except MalformedQuery:
            send(dns_messages.reject(packet))
            return None
        answer = self._answer(query)
        if answer is None and len(self._pending) < MOST_PENDING:
            return self._forward(query, packet, send, by_stream=by_stream)
        send(answer or dns_messages.answer(query, Result.FAILED))
        return None

    def _answer(self, query: Query) -> bytes | None:
        """Return the answer that needs nobody else; None when there is none."""
        if not query.is_standard:
            return dns_messages.answer(query, Result.UNKNOWN_OPERATION)
        if query.is_internet and (address := self._names.get(query.name)):
            records = [dns_messages.address_record(address)] if query.kind in (Kind.A, Kind.ANY) else []
            return dns_messages.answer(query, Result.OK, records, is_own=True)
        if query.is_internet and (name := self._reverse.get(query.name)):
            records = [dns_messages.name_record(name)] if query.kind in (Kind.PTR, Kind.ANY) else []
            return dns_messages.answer(query, Result.OK, records, is_own=True)
        return None if self._upstream.servers() else dns_messages.answer(query, Result.REFUSED)

    async def _forward(self, query: Query, packet: bytes, send: Send, *, by_stream: bool) -> None:
        """Ask the machine's resolvers, one after the other, until one answers."""
        ask = _ask_by_stream if by_stream else _ask
        for server in self._upstream.servers():
            number = secrets.randbelow(1 << 16)
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    found = await ask(server, self._upstream.port, query, packet, number)
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                continue
            send(dns_messages.renumber(found, query.number))
            return
        send(dns_messages.answer(query, Result.FAILED))


def _message_writer(writer: asyncio.StreamWriter) -> Send:
    """Return what writes a message to a stream."""
    return lambda answer: writer.write(_LENGTH.pack(len(answer)) + answer)


async def _read_message(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(TIMEOUT_S):
        (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return await reader.readexactly(size)


class _Asking(asyncio.DatagramProtocol):
    """One query to one server, from a socket of its own: nobody can guess where an answer is awaited."""

    def __init__(self, query: Query, number: int, answer: asyncio.Future[bytes]) -> None:
        self._query, self._number, self._answer = query, number, answer

    def datagram_received(self, data: bytes, _addr: Address) -> None:
        if not self._answer.done() and dns_messages.is_answer(data, self._query, self._number):
            self._answer.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self._answer.done():
            self._answer.set_exception(exc)


async def _ask(server: str, port: int, query: Query, packet: bytes, number: int) -> bytes:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes] = loop.create_future()
    transport, _asking = await loop.create_datagram_endpoint(
        lambda: _Asking(query, number, answer), remote_addr=(server, port)
    )
    try:
        transport.sendto(dns_messages.renumber(packet, number))
        return await answer
    finally:
        transport.close()


async def _ask_by_stream(server: str, port: int, query: Query, packet: bytes, number: int) -> bytes:
    reader, writer = await asyncio.open_connection(server, port)
    try:
        _message_writer(writer)(dns_messages.renumber(packet, number))
        found = await _read_message(reader)
    finally:
        writer.close()
    if not dns_messages.is_answer(found, query, number):
        raise ConnectionError(server)
    return found


class ResolverServer:
    """A resolver that listens."""

    def __init__(self, resolver: Resolver, streams: asyncio.Server | None) -> None:
        self._resolver, self._streams = resolver, streams

    def close(self) -> None:
        """Stop, and close the sockets."""
        self._resolver.close()
        if self._streams is not None:
            self._streams.close()


async def serve(
    datagrams: socket.socket, streams: socket.socket | None, names: Mapping[str, str], upstream: Upstream
) -> ResolverServer:
    """Listen on a bound UDP socket, and on a TCP socket that is listening, until it is closed."""
    loop = asyncio.get_running_loop()
    datagrams.setblocking(False)
    _transport, resolver = await loop.create_datagram_endpoint(
        lambda: Resolver(names, upstream), sock=datagrams
    )
    server = None
    if streams is not None:
        streams.setblocking(False)
        server = await asyncio.start_server(resolver.serve_connection, sock=streams)
    return ResolverServer(resolver, server)
