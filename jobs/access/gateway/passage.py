"""Carrying what passes, and finding words where there is nothing to carry."""

from __future__ import annotations

from typing import Final

import aiohttp
import structlog
from django.conf import settings

from jobs.access.gateway import pages, websocket
from jobs.access.gateway.asgi import Receive, Send
from jobs.access.gateway.asked import Asked
from jobs.access.gateway.connector import JobConnector, Listeners, NotListening, Unchecked, going
from jobs.access.gateway.http import Answer, Body, Gone, TooLarge
from jobs.access.gateway.pages import Said
from jobs.access.gateway.right import LONGEST_TRUST_SECONDS, Right
from jobs.access.gateway.visits import Door
from jobs.access.gateway.watch import until_first

log = structlog.get_logger(__name__)

CONNECT_SECONDS: Final = 5.0
KEPT_SECONDS: Final = 15.0
LONGEST_LINE: Final = 64 * 1024
READ_BYTES: Final = 256 * 1024

SAYS: Final = {
    Door.STARTING: pages.STARTING,
    Door.ENDED: pages.ENDED,
    Door.FORBIDDEN: pages.FORBIDDEN,
    Door.STRANGER: pages.STRANGER,
    Door.NOWHERE: pages.NOWHERE,
}
"""What is said where the door is not open."""


class Passage:
    """The connections to jobs.  Both ways through give back what to say where the job gave no answer."""

    def __init__(self) -> None:
        self._client: aiohttp.ClientSession | None = None
        self._listeners = Listeners()

    async def close(self) -> None:
        """End all connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        await self._listeners.close()

    async def http(self, request: Asked, right: Right, receive: Receive, send: Send) -> Said | None:
        """Carry one request and its answer.

        An answer that breaks off is left unfinished: the server closes the connection, and nobody takes it
        for the whole.
        """
        going.set(right.now)
        passing = Answer(self._connections, request, right.now, send)
        try:
            body = Body(request, receive)
            done = await until_first([passing.carry(body), body.abandoned()], right.holds, _every())
            if done is not None:
                done.result()
                return None
        except Gone:
            return None
        except TooLarge:
            said = pages.TOO_LARGE
        except (aiohttp.ClientError, OSError) as problem:
            said = _silent(request, problem)
        else:
            said = SAYS.get(right.now.door, pages.SILENT)
        return None if passing.begun else said

    async def websocket(
        self, request: Asked, right: Right, protocols: list[str], receive: Receive, send: Send
    ) -> Said | None:
        """Carry one WebSocket, for which the browser asks for one of `protocols`."""
        await receive()  # websocket.connect
        going.set(right.now)
        try:
            socket = await websocket.connect(self._connections, request, right.now, protocols)
        except aiohttp.WSServerHandshakeError as refusal:
            return pages.malformed(refusal.status if 400 <= refusal.status < 600 else 502)
        except (aiohttp.ClientError, OSError) as problem:
            return _silent(request, problem)
        bridge = websocket.Bridge(socket, receive, send)
        try:
            await bridge.accept(request, right.now)
            done = await until_first([bridge.from_browser(), bridge.from_job()], right.holds, _every())
            if done is None:
                await bridge.close_browser(websocket.POLICY)
            elif done.exception() is not None:
                await bridge.close_browser(websocket.BAD_GATEWAY)
        finally:
            await socket.close(code=websocket.GOING_AWAY)
        return None

    @property
    def _connections(self) -> aiohttp.ClientSession:
        """No proxy, no redirects, and above all no memory for cookies: all people's requests share it."""
        if self._client is None:
            self._client = aiohttp.ClientSession(
                connector=JobConnector(self._listeners, KEPT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                ws_response_class=websocket.JobSocket,
                auto_decompress=False,
                skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    sock_connect=CONNECT_SECONDS,
                    sock_read=settings.CONSOLE_GATEWAY_IDLE_SECONDS,
                ),
                read_bufsize=READ_BYTES,
                max_line_size=LONGEST_LINE,
                max_field_size=LONGEST_LINE,
            )
        return self._client


def _every() -> float:
    return min(float(settings.CONSOLE_GATEWAY_RECHECK_SECONDS), LONGEST_TRUST_SECONDS)


def _silent(request: Asked, problem: Exception) -> Said:
    """The problem's kind goes to the log; its text would repeat cookies and tokens."""
    log.info("endpoint_silent", endpoint=request.slug, problem=type(problem).__name__)
    if isinstance(problem, NotListening):
        return pages.NOT_LISTENING
    return pages.UNCHECKED if isinstance(problem, Unchecked) else pages.SILENT
