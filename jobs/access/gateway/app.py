"""The ASGI application of the endpoints' hosts: it checks the right and passes the request on.

The console's process serves it beside Django, told apart by the Host header alone.  It holds no database
connection while bytes flow, and how much may flow at a time is bounded.
"""

from __future__ import annotations

from typing import Final

import structlog
from django.conf import settings
from django.db import DatabaseError

from jobs.access.gateway import addresses, entry_pages, pages, visits
from jobs.access.gateway.answer_cache import AnswerCache
from jobs.access.gateway.asgi import Receive, Scope, Send, answer
from jobs.access.gateway.proxy import PAGES, Proxy
from jobs.access.gateway.rechecks import RecheckedRight
from jobs.access.gateway.requests import EndpointRequest, Malformed, parse_request
from jobs.access.gateway.visits import EndpointAccess, EndpointState
from jobs.live.limits import EVERYBODY, ConnectionLimit, LimitReached
from jobs.live.thread_pool import run_in_thread

log = structlog.get_logger(__name__)

ACCESS_SECONDS: Final = 2.0
"""A decision is good for so long."""


class Gateway:
    """The application; one a process.  `close` when the server stops."""

    def __init__(self) -> None:
        self.open_requests = ConnectionLimit()
        self._proxy = Proxy()
        self._accesses: AnswerCache[tuple[str, tuple[str, ...]], EndpointAccess] = AnswerCache(
            _ask, ACCESS_SECONDS
        )

    @staticmethod
    def serves(scope: Scope) -> bool:
        """Tell whether the request is for an endpoint's host, and so is nothing that Django may see."""
        return any(addresses.is_apps_host(host) for host in addresses.hosts(scope))

    async def close(self) -> None:
        """Close the connections to jobs, and forget the rights of visitors."""
        self._accesses.forget_all()
        await self._proxy.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = parse_request(scope)
        except Malformed as problem:
            await answer(scope, send, pages.render(pages.malformed_request(problem.status)))
            return
        try:
            with self.open_requests.hold(EVERYBODY, settings.CONSOLE_GATEWAY_CONNECTIONS):
                await self._serve(request, scope, receive, send)
        except LimitReached:
            await answer(scope, send, entry_pages.render_page(pages.FULL, request))
        except DatabaseError as problem:
            log.warning("endpoint_unknown", endpoint=request.slug, problem=type(problem).__name__)
            await answer(scope, send, entry_pages.render_page(pages.AWAY, request))

    async def _serve(self, request: EndpointRequest, scope: Scope, receive: Receive, send: Send) -> None:
        if request.path.startswith(addresses.OWN):
            await answer(scope, send, await entry_pages.answer_own_page(request))
            return
        if request.crosses_origins:
            await answer(scope, send, entry_pages.render_page(pages.FOREIGN, request))
            return
        access = await self._find_access(request)
        if access.state is EndpointState.OPEN:
            most = settings.CONSOLE_GATEWAY_CONNECTIONS_PER_PERSON
            with self.open_requests.hold(access.person, most):
                await self._pass(request, access, scope, receive, send)
        elif access.state is EndpointState.STRANGER and request.wants_page:
            await answer(scope, send, entry_pages.redirect_to_console(request, request.target))
        else:
            if access.state is EndpointState.FORBIDDEN:
                await run_in_thread(visits.record_refusal, request.slug, request.client, access.person)
            await answer(scope, send, entry_pages.render_page(PAGES[access.state], request, access))

    async def _pass(
        self, request: EndpointRequest, access: EndpointAccess, scope: Scope, receive: Receive, send: Send
    ) -> None:
        right = RecheckedRight(access, lambda: self._find_access(request))
        if request.websocket:
            page = await self._proxy.websocket(request, right, scope["subprotocols"], receive, send)
        else:
            page = await self._proxy.http(request, right, receive, send)
        if page is not None:
            await answer(scope, send, entry_pages.render_page(page, request, access))

    async def _find_access(self, request: EndpointRequest) -> EndpointAccess:
        return await self._accesses.get((request.slug, request.cookies.visits))


async def _ask(key: tuple[str, tuple[str, ...]]) -> EndpointAccess:
    return await run_in_thread(visits.find_access, *key)
