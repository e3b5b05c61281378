"""Connections to ports of pods, by `pods/portforward` over a WebSocket.

The kubelet, or its container runtime, connects to the port within the pod's own network.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from jobs.backends.kubernetes.client import api
from jobs.backends.kubernetes.client.connection import ApiConnection
from jobs.backends.kubernetes.client.websocket import CHUNK, messages, open_socket

SETTLE_S: Final = 0.2
"""The protocol has no word for a connection that was made: only a failure comes, within milliseconds."""

_DATA, _ERROR = 0, 1
_PROTOCOL: Final = "v4.channel.k8s.io"
_PORT_BYTES: Final = 2
"""Each channel begins with the port's number."""

_pumps: set[asyncio.Task[None]] = set()


async def open_port(
    connection: ApiConnection, namespace: str, pod: str, port: int, *, timeout_s: float = 10
) -> socket.socket:
    """Return a connected, non-blocking socket to a port of a pod; its bytes pass through this event loop.

    Raises ApiError, Unreachable, or ConnectionRefusedError where nothing listens.
    """
    where = api.path("/api/v1/namespaces/{}/pods/{}/portforward", namespace, pod)
    made = await open_socket(connection, where, [("ports", str(port))], (_PROTOCOL,), timeout_s)
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setblocking(False)
    pump = _Pump(made, ours)
    task = asyncio.ensure_future(pump.run())
    _pumps.add(task)
    task.add_done_callback(_pumps.discard)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SETTLE_S):
            await pump.first.wait()
    if pump.error:
        theirs.close()
        raise ConnectionRefusedError(pump.error)
    return theirs


class _Pump:
    """Passes bytes on between a WebSocket and a socket, until one of them ends."""

    def __init__(self, websocket: ClientConnection, local: socket.socket) -> None:
        self._websocket, self._local = websocket, local
        self._begun = {_DATA: 0, _ERROR: 0}
        self.first = asyncio.Event()
        """Set when the first byte has come, or an error."""
        self.error = ""

    async def run(self) -> None:
        """Pass on, and close both."""
        directions = [asyncio.ensure_future(each) for each in (self._pass_out(), self._pass_in())]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in directions:
                each.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            self.first.set()
            self._local.close()
            await self._websocket.close()

    async def _pass_in(self) -> None:
        loop = asyncio.get_running_loop()
        async for channel, message in messages(self._websocket):
            data = self._strip(channel, message)
            if not data:
                continue
            if channel == _ERROR:
                self.error = data[:1000].decode(errors="replace")
                return
            self.first.set()
            try:
                await loop.sock_sendall(self._local, data)
            except OSError:
                return

    async def _pass_out(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError, ConnectionClosed):
            while data := await loop.sock_recv(self._local, CHUNK):
                await self._websocket.send(bytes((_DATA,)) + data)

    def _strip(self, channel: int, data: bytes) -> bytes:
        """Return the data of a message without the port's number."""
        missing = _PORT_BYTES - self._begun.get(channel, _PORT_BYTES)
        if missing:
            self._begun[channel] += min(missing, len(data))
        return data[missing:]
