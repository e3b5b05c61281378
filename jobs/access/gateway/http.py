"""HTTP: the request streams to the job and its answer streams back, neither kept whole anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
from django.conf import settings
from yarl import URL

from jobs.access.gateway import headers
from jobs.access.gateway.asgi import Receive, Send
from jobs.access.gateway.asked import Asked
from jobs.access.gateway.connector import name_of
from jobs.access.gateway.visits import Standing

MIB = 1024 * 1024


class TooLarge(Exception):
    """The request's body is longer than the gateway carries."""


class Gone(Exception):
    """The browser left before it had sent everything."""


class Body:
    """The request's body, read as the job takes it."""

    def __init__(self, asked: Asked, receive: Receive) -> None:
        length = asked.header(b"content-length")
        self.exists = bool(length and length != "0") or asked.header(b"transfer-encoding") is not None
        self.read = asyncio.Event()
        self.trouble: Gone | TooLarge | None = None
        self._receive = receive
        self._left = settings.CONSOLE_GATEWAY_BODY_MIB * MIB
        if length and int(length) > self._left:
            raise TooLarge
        if not self.exists:
            self.read.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise self._troubled(Gone())
            more = message.get("more_body", False)
            piece = message.get("body", b"")
            self._left -= len(piece)
            if self._left < 0:
                raise self._troubled(TooLarge())
            if piece:
                yield piece
        self.read.set()

    def _troubled(self, trouble: Gone | TooLarge) -> Gone | TooLarge:
        self.trouble = trouble
        return trouble

    async def abandoned(self) -> None:
        """Return once the browser has gone, which it tells only after everything was read."""
        await self.read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


class Answer:
    """The job's answer on its way to the browser; `begun` once there is no taking it back."""

    def __init__(self, client: aiohttp.ClientSession, asked: Asked, standing: Standing, send: Send) -> None:
        self.begun = False
        self._client = client
        self._asked = asked
        self._standing = standing
        self._send = send

    async def carry(self, body: Body) -> None:
        """Ask the job and pass on what it says.  Raises aiohttp.ClientError, OSError, Gone, TooLarge."""
        try:
            async with self._ask(body) as response:
                await self._begin(response)
                async for piece in response.content.iter_any():
                    await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        except (aiohttp.ClientError, OSError) as error:
            raise body.trouble or error from error
        await self._send({"type": "http.response.body", "body": b""})

    def _ask(self, body: Body) -> aiohttp.client._RequestContextManager:
        return self._client.request(
            self._asked.method,
            address("http", self._asked, self._standing),
            headers=headers.to_job(self._asked, self._standing),
            data=body if body.exists else None,
            allow_redirects=False,
        )

    async def _begin(self, response: aiohttp.ClientResponse) -> None:
        if not 200 <= response.status < 600:
            raise aiohttp.ClientPayloadError(f"status {response.status}")
        told = headers.to_browser(response.raw_headers, self._asked, self._standing, response.status)
        self.begun = True
        await self._send({"type": "http.response.start", "status": response.status, "headers": told})


def address(scheme: str, asked: Asked, standing: Standing) -> URL:
    """Where the job listens, with the path and query exactly as the browser sent them."""
    return URL(f"{scheme}://{name_of(standing)}:{standing.port}{asked.target}", encoded=True)
