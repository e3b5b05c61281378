"""HTTP: the request streams to the job and its answer streams back, neither kept whole anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
from django.conf import settings
from yarl import URL

from jobs.access.gateway import headers
from jobs.access.gateway.asgi import Receive, Send
from jobs.access.gateway.connector import name_of
from jobs.access.gateway.requests import EndpointRequest
from jobs.access.gateway.visits import EndpointAccess

MIB = 1024 * 1024


class RequestTooLarge(Exception):
    """The request's body is longer than the gateway carries."""


class BrowserGone(Exception):
    """The browser left before it had sent everything."""


class RequestBody:
    """The request's body, read as the job takes it."""

    def __init__(self, request: EndpointRequest, receive: Receive) -> None:
        length = request.header(b"content-length")
        self.exists = bool(length and length != "0") or request.header(b"transfer-encoding") is not None
        self.read = asyncio.Event()
        self.trouble: BrowserGone | RequestTooLarge | None = None
        self._receive = receive
        self._left = settings.CONSOLE_GATEWAY_BODY_MIB * MIB
        if length and int(length) > self._left:
            raise RequestTooLarge
        if not self.exists:
            self.read.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise self._fail(BrowserGone())
            more = message.get("more_body", False)
            piece = message.get("body", b"")
            self._left -= len(piece)
            if self._left < 0:
                raise self._fail(RequestTooLarge())
            if piece:
                yield piece
        self.read.set()

    def _fail(self, trouble: BrowserGone | RequestTooLarge) -> BrowserGone | RequestTooLarge:
        self.trouble = trouble
        return trouble

    async def wait_until_gone(self) -> None:
        """Return once the browser has gone, which it tells only after everything was read."""
        await self.read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


class ProxiedAnswer:
    """The job's answer on its way to the browser; `begun` once its head was sent."""

    def __init__(
        self, client: aiohttp.ClientSession, request: EndpointRequest, access: EndpointAccess, send: Send
    ) -> None:
        self.begun = False
        self._client = client
        self._request = request
        self._access = access
        self._send = send

    async def carry(self, body: RequestBody) -> None:
        """Ask the job and pass on what it says.  Raises aiohttp.ClientError, OSError, Gone, TooLarge."""
        try:
            async with self._ask(body) as response:
                await self._begin(response)
                async for piece in response.content.iter_any():
                    await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        except (aiohttp.ClientError, OSError) as error:
            raise body.trouble or error from error
        await self._send({"type": "http.response.body", "body": b""})

    def _ask(self, body: RequestBody) -> aiohttp.client._RequestContextManager:
        return self._client.request(
            self._request.method,
            upstream_url("http", self._request, self._access),
            headers=headers.to_job(self._request, self._access),
            data=body if body.exists else None,
            allow_redirects=False,
        )

    async def _begin(self, response: aiohttp.ClientResponse) -> None:
        if not 200 <= response.status < 600:
            raise aiohttp.ClientPayloadError(f"status {response.status}")
        answer_headers = headers.to_browser(
            response.raw_headers, self._request, self._access, response.status
        )
        self.begun = True
        await self._send(
            {"type": "http.response.start", "status": response.status, "headers": answer_headers}
        )


def upstream_url(scheme: str, request: EndpointRequest, access: EndpointAccess) -> URL:
    """Return the job's address, with the path and query exactly as the browser sent them."""
    return URL(f"{scheme}://{name_of(access)}:{access.port}{request.target}", encoded=True)
