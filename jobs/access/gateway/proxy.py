"""Passing requests on to jobs, with a page of the gateway where a job gives no answer."""

from __future__ import annotations

from typing import Final

import aiohttp
import structlog
from django.conf import settings

from jobs.access.connections import NotListening, Unchecked, close_agents
from jobs.access.gateway import pages, websocket
from jobs.access.gateway.asgi import Receive, Send
from jobs.access.gateway.client_sessions import LazySession
from jobs.access.gateway.connector import JobConnector, Unconnected, destination
from jobs.access.gateway.http import BrowserGone, ProxiedAnswer, RequestBody, RequestTooLarge
from jobs.access.gateway.pages import PageText
from jobs.access.gateway.rechecks import RecheckedRight
from jobs.access.gateway.requests import EndpointRequest
from jobs.access.gateway.visits import EndpointAccess, EndpointState

log = structlog.get_logger(__name__)

KEPT_SECONDS: Final = 15.0
LONGEST_LINE: Final = 64 * 1024
READ_BYTES: Final = 256 * 1024

PAGES: Final = {
    EndpointState.STARTING: pages.STARTING,
    EndpointState.ENDED: pages.ENDED,
    EndpointState.FORBIDDEN: pages.FORBIDDEN,
    EndpointState.STRANGER: pages.STRANGER,
    EndpointState.NOWHERE: pages.NOWHERE,
}
"""Pages of the states in which an endpoint can't be used."""


class Proxy:
    """The connections to jobs.  Both methods return the page to show where the job gave no answer."""

    def __init__(self) -> None:
        self._session = LazySession(self._open_session)

    async def close(self) -> None:
        """End all connections; the next request opens new ones."""
        await self._session.close()
        await close_agents()

    async def http(
        self, request: EndpointRequest, right: RecheckedRight[EndpointAccess], receive: Receive, send: Send
    ) -> PageText | None:
        """Carry one request and its answer.

        An answer that breaks off is left unfinished: the server closes the connection, and nobody takes it
        for the whole.
        """
        destination.set(right.now)
        passing = ProxiedAnswer(self._session.get(), request, right.now, send)
        try:
            body = RequestBody(request, receive)
            done = await right.until_first([passing.carry(body), body.wait_until_gone()])
            if done is not None:
                done.result()
                return None
        except BrowserGone:
            return None
        except RequestTooLarge:
            page = pages.TOO_LARGE
        except (aiohttp.ClientError, OSError) as problem:
            page = _explain(request, problem)
        else:
            page = PAGES.get(right.now.state, pages.SILENT)
        return None if passing.begun else page

    async def websocket(
        self,
        request: EndpointRequest,
        right: RecheckedRight[EndpointAccess],
        protocols: list[str],
        receive: Receive,
        send: Send,
    ) -> PageText | None:
        """Carry one WebSocket, for which the browser asks for one of `protocols`."""
        await receive()  # websocket.connect
        destination.set(right.now)
        try:
            socket = await websocket.connect(self._session.get(), request, right.now, protocols)
        except aiohttp.WSServerHandshakeError as refusal:
            return pages.malformed_request(refusal.status if 400 <= refusal.status < 600 else 502)
        except (aiohttp.ClientError, OSError) as problem:
            return _explain(request, problem)
        bridge = websocket.Bridge(socket, receive, send)
        try:
            await bridge.accept(request, right.now)
            done = await right.until_first([bridge.from_browser(), bridge.from_job()])
            if done is None:
                await bridge.close_browser(websocket.POLICY)
            elif done.exception() is not None:
                await bridge.close_browser(websocket.BAD_GATEWAY)
        finally:
            await socket.close(code=websocket.GOING_AWAY)
        return None

    def _open_session(self) -> aiohttp.ClientSession:
        """No proxy, no redirects, and above all no memory for cookies: all people's requests share it."""
        return aiohttp.ClientSession(
            connector=JobConnector(KEPT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            ws_response_class=websocket.JobSocket,
            auto_decompress=False,
            skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_read=settings.CONSOLE_GATEWAY_IDLE_SECONDS,
            ),
            read_bufsize=READ_BYTES,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )


def _explain(request: EndpointRequest, problem: Exception) -> PageText:
    """The problem's kind goes to the log; its text would repeat cookies and tokens."""
    reason = problem.problem if isinstance(problem, Unconnected) else problem
    log.info("endpoint_silent", endpoint=request.slug, problem=type(reason).__name__)
    if isinstance(reason, NotListening):
        return pages.NOT_LISTENING
    return pages.UNCHECKED if isinstance(reason, Unchecked) else pages.SILENT
