"""The little of ASGI that the gateway speaks (ASGI 3.0, the HTTP and WebSocket specification 2.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer of the gateway's own."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()


async def answer(scope: Scope, send: Send, reply: Reply) -> None:
    """Send `reply`; to a WebSocket that has not been accepted, as the refusal of its handshake."""
    websocket = scope["type"] == "websocket"
    if websocket and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    kind = "websocket.http.response" if websocket else "http.response"
    headers = [*reply.headers, (b"content-length", b"%d" % len(reply.body))]
    await send({"type": f"{kind}.start", "status": reply.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": reply.body})
