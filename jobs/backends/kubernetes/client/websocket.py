"""WebSockets of an apiserver: streams of a pod, each a channel by its number."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from jobs.backends.base import Unreachable
from jobs.backends.kubernetes.client import api
from jobs.backends.kubernetes.client.connection import ApiConnection
from jobs.backends.kubernetes.client.http_clients import KEEPALIVE

PING_S: Final = 20.0
CHUNK: Final = 32 * 1024
HIGH: Final = 512 * 1024
"""So many bytes of a stream that nobody reads, and no more is received."""


async def open_socket(
    connection: ApiConnection,
    path: str,
    params: Sequence[tuple[str, str]],
    protocols: Sequence[str],
    timeout_s: float,
) -> ClientConnection:
    """Return a WebSocket of a path.  Raises ApiError or Unreachable."""
    headers, context = await asyncio.to_thread(_prepare, connection, timeout_s)
    url = f"ws{connection.server.removeprefix('http')}{path}?{urlencode(params)}"
    try:
        made = await connect(
            url,
            ssl=context,
            server_hostname=connection.server_name or None if context else None,
            subprotocols=[Subprotocol(each) for each in protocols],
            additional_headers=headers,
            user_agent_header="job-console",
            compression=None,
            proxy=None,
            open_timeout=timeout_s,
            close_timeout=timeout_s,
            ping_interval=PING_S,
            ping_timeout=None,  # nobody reads the answer where a process takes no input: TCP tells of the end
            max_size=None,
            max_queue=4,
        )
    except InvalidStatus as error:
        answer = error.response
        api.raise_refusal(connection, f"GET {path}", answer.status_code, bytes(answer.body or b""))
        raise AssertionError("unreachable") from error
    except TimeoutError as error:
        raise Unreachable(f"{connection.server}{path}: nothing within {timeout_s:g} s") from error
    except (OSError, InvalidHandshake, InvalidURI) as error:
        raise Unreachable(f"{connection.server}{path}: {error}") from error
    raw = made.transport.get_extra_info("socket")
    for level, option, value in (
        KEEPALIVE if raw else ()
    ):  # which is gone where the server has closed it by now
        raw.setsockopt(level, option, value)
    return made


def _prepare(connection: ApiConnection, timeout_s: float) -> tuple[dict[str, str], object]:
    """Return the headers and the TLS context, for which a program may be run."""
    context = None
    if connection.server.startswith("https:"):
        context = connection.make_tls_context(connection.certificate(timeout_s))
    return connection.headers(timeout_s), context


class Stream:
    """The received and unread bytes of a channel."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ended = False
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    async def add(self, data: bytes) -> None:
        """Add bytes; returns when there is room for more."""
        if self._ended:
            return
        self._data += data
        self._changed.set()
        if len(self._data) > HIGH:
            self._has_room.clear()
            await self._has_room.wait()

    def end(self) -> None:
        """Nothing comes any more."""
        self._ended = True
        self._changed.set()
        self._has_room.set()

    def discard(self) -> None:
        """Read no more: what comes is dropped."""
        self.end()
        self._data.clear()

    async def read(self, limit: int) -> bytes:
        """Return at most `limit` bytes; b"" at the end."""
        while not self._data and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._data[:limit])
        del self._data[:limit]
        if len(self._data) <= HIGH // 2:
            self._has_room.set()
        return data


async def messages(socket: ClientConnection) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the channel and data of each message, to the end of the connection, however it ends."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            message = await socket.recv(decode=False)
            if message:
                yield message[0], message[1:]
