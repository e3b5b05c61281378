"""WebSockets: opened at the job first, so that its refusal is the browser's too; then message by message."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import aiohttp
from aiohttp import WSMsgType
from django.conf import settings

from jobs.access.gateway import headers
from jobs.access.gateway.asgi import Receive, Send
from jobs.access.gateway.http import MIB, upstream_url
from jobs.access.gateway.requests import EndpointRequest
from jobs.access.gateway.visits import EndpointAccess

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
POLICY: Final = 1008
NO_STATUS: Final = 1005
ABNORMAL: Final = 1006
BAD_GATEWAY: Final = 1014

OPEN_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 5.0
HEARTBEAT_SECONDS: Final = 120.0
"""A job's machine that went away without a word is noticed within one and a half of these."""


class JobSocket(aiohttp.ClientWebSocketResponse):
    """A WebSocket at the job that remembers how its handshake was answered."""

    def __init__(
        self,
        reader: Any,
        writer: Any,
        protocol: str | None,
        response: aiohttp.ClientResponse,
        *args: Any,
        **kw: Any,
    ) -> None:
        super().__init__(reader, writer, protocol, response, *args, **kw)
        self.answered: Final = response.raw_headers


class Bridge:
    """One WebSocket on each side (close codes: RFC 6455 section 7.4, and IANA's registry)."""

    def __init__(self, job: JobSocket, receive: Receive, send: Send) -> None:
        self._job = job
        self._receive = receive
        self._send = send

    async def accept(self, request: EndpointRequest, access: EndpointAccess) -> None:
        """Accept the browser's handshake as the job did: the same subprotocol, and its cookies, if any."""
        answer_headers = headers.to_browser(self._job.answered, request, access, 101)
        cookies = [(name, value) for name, value in answer_headers if name == b"set-cookie"]
        accepted = {"type": "websocket.accept", "subprotocol": self._job.protocol, "headers": cookies}
        await self._send(accepted)

    async def from_browser(self) -> None:
        """Carry to the job until the browser closes, and close there with its code."""
        while (message := await self._receive())["type"] == "websocket.receive":
            if (data := message.get("bytes")) is not None:
                await self._job.send_bytes(data)
            else:
                await self._job.send_str(message["text"])
        code = _sayable(message.get("code", NO_STATUS), GOING_AWAY)
        await self._job.close(code=code, message=(message.get("reason") or "").encode())

    async def from_job(self) -> None:
        """Carry to the browser until the job closes, and close there with its code."""
        while (message := await self._job.receive()).type in {WSMsgType.TEXT, WSMsgType.BINARY}:
            kind = "text" if message.type is WSMsgType.TEXT else "bytes"
            await self._send({"type": "websocket.send", kind: message.data})
        code: int = BAD_GATEWAY
        reason = ""
        if message.type is WSMsgType.CLOSE:
            code, reason = message.data, message.extra or ""
        elif isinstance(message.data, aiohttp.WebSocketError):
            code = message.data.code
        await self.close_browser(_sayable(code, BAD_GATEWAY), reason)

    async def close_browser(self, code: int, reason: str = "") -> None:
        """Close the browser's side, unless it has gone already."""
        with suppress(OSError):
            await self._send({"type": "websocket.close", "code": code, "reason": reason})


def _sayable(code: int, broken: int) -> int:
    """`code` as a close frame may carry it; `broken` for a connection that just broke off."""
    return {NO_STATUS: NORMAL, ABNORMAL: broken}.get(code, code)


async def connect(
    client: aiohttp.ClientSession, request: EndpointRequest, access: EndpointAccess, protocols: list[str]
) -> JobSocket:
    """Open the WebSocket at the job.

    Raises aiohttp.WSServerHandshakeError when the job refuses, and aiohttp.ClientError or TimeoutError when
    there is nobody to refuse.
    """
    async with asyncio.timeout(OPEN_SECONDS):
        socket = await client.ws_connect(
            upstream_url("http", request, access),
            headers=headers.to_job(request, access),
            protocols=protocols,
            max_msg_size=settings.CONSOLE_GATEWAY_MESSAGE_MIB * MIB,
            heartbeat=HEARTBEAT_SECONDS,
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
        )
    assert isinstance(socket, JobSocket)
    return socket
