"""The proxy at a job's service address: passes an attempt's requests on to the console with who asks.

The listening socket is in the attempt's router, so nobody else can reach it, and the address of a connection
tells the replica.  Of each connection one request is read and answered, so that nothing which a job sends can
be taken for a second one.  What may be asked is for the console to say (`jobs.access.job_service`).
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final, Self

from jobs.node.network.request_head import END, BadRequest, RequestHead
from jobs.node.network.service import ATTEMPT, REPLICA
from jobs.node.supervisor.plan import Plan, address_of

MAX_HEAD: Final = 16 * 1024
MAX_CONNECTIONS: Final = 16
"""Of one attempt at a time; more of them wait."""

REQUEST_S: Final = 20.0
ANSWER_S: Final = 60.0
_LINGER_S: Final = 1.0
_CHUNK: Final = 64 * 1024


class ServiceProxy:
    """Serves the replicas of the attempt `key`; `positions` has theirs by their addresses.

    `listening` accepts their connections, `console` is the path of the console's Unix socket.
    """

    def __init__(
        self, listening: socket.socket, key: str, positions: Mapping[str, int], console: Path
    ) -> None:
        self._listening, self._key, self._positions, self._console = listening, key, positions, console
        self._open = asyncio.Semaphore(MAX_CONNECTIONS)

    @classmethod
    def of(cls, listening: socket.socket, plan: Plan, console: Path) -> Self:
        """Return what serves the replicas of a plan with a network."""
        assert plan.network is not None
        positions = {address_of(plan.network, each.position): each.position for each in plan.replicas()}
        return cls(listening, plan.key, positions, console)

    async def serve(self) -> None:
        """Serve until it is cancelled, which ends the open connections too."""
        connections: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._serve_connection(reader, writer))
            connections.add(task)
            task.add_done_callback(connections.discard)

        server = await asyncio.start_server(accept, sock=self._listening, limit=MAX_HEAD)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            server.close()
            for task in connections:
                task.cancel()
            await asyncio.gather(*connections, return_exceptions=True)

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        position = self._positions.get(writer.get_extra_info("peername")[0])
        try:
            if position is None:
                return
            async with self._open:
                with suppress(OSError):
                    await self._serve_request(position, reader, writer)
                    await _close(reader, writer)
        finally:
            writer.transport.abort()

    async def _serve_request(
        self, position: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                head, body = await _read_request(reader, writer)
            own = [(ATTEMPT, self._key.encode("ascii")), (REPLICA, b"%d" % position)]
            async with asyncio.timeout(ANSWER_S):
                await self._pass_on(head.render(own) + body, writer)
        except BadRequest as refused:
            writer.write(_refusal(refused.status))
        except TimeoutError:
            writer.transport.abort()

    async def _pass_on(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        """Have the console answer.  Raises BadRequest where it is away."""
        try:
            answer, console = await asyncio.open_unix_connection(self._console)
        except OSError as error:
            raise BadRequest(503) from error
        try:
            console.write(request)
            first = await answer.read(_CHUNK)
            if not first:
                raise BadRequest(503)
            while first:
                writer.write(first)
                await writer.drain()
                first = await answer.read(_CHUNK)
        finally:
            console.transport.abort()


async def _read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[RequestHead, bytes]:
    """Read one whole request.  Raises BadRequest, and ConnectionError where it breaks off."""
    try:
        head = RequestHead.parse(await reader.readuntil(END))
        if head.expects:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return head, await reader.readexactly(head.length)
    except asyncio.LimitOverrunError as error:
        raise BadRequest(431) from error
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError from error


def _refusal(status: int) -> bytes:
    """Return a whole answer, in the form of the console's own."""
    body = json.dumps({"error": HTTPStatus(status).phrase}).encode()
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    return "\r\n".join(lines).encode() + END + body


async def _close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """End the connection; what is still on its way here would otherwise take the answer away."""
    await writer.drain()
    writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while await reader.read(_CHUNK):
                pass
