"""The ASGI application of the endpoints' hosts: who asks, may they, and then out of the way.

The console's process serves it beside Django, told apart by the Host header alone.  It holds no database
connection while bytes flow, and how much may flow at a time is bounded.
"""

from __future__ import annotations

from typing import Final

import structlog
from django.db import DatabaseError

from jobs.access.gateway import addresses, entry, pages, visits
from jobs.access.gateway.asgi import Receive, Scope, Send, answer
from jobs.access.gateway.asked import Asked, Malformed, asked
from jobs.access.gateway.memory import Memory
from jobs.access.gateway.passage import SAYS, Passage
from jobs.access.gateway.places import Full, Places
from jobs.access.gateway.right import Right
from jobs.access.gateway.visits import Door, Standing
from jobs.live.threads import aside

log = structlog.get_logger(__name__)

STANDING_SECONDS: Final = 2.0
"""A decision is good for so long."""


class Gateway:
    """One a process; `close` when the server stops."""

    def __init__(self) -> None:
        self.places = Places()
        self._passage = Passage()
        self._standings: Memory[tuple[str, tuple[str, ...]], Standing] = Memory(_ask, STANDING_SECONDS)

    @staticmethod
    def serves(scope: Scope) -> bool:
        """Whether the request is for an endpoint's host, and so is nothing that Django may see."""
        return any(addresses.is_apps_host(host) for host in addresses.hosts(scope))

    async def close(self) -> None:
        """Give up the connections to jobs, and what was known of people."""
        self._standings.forget_all()
        await self._passage.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = asked(scope)
        except Malformed as problem:
            await answer(scope, send, pages.page(pages.malformed(problem.status)))
            return
        try:
            with self.places.one():
                await self._serve(request, scope, receive, send)
        except Full:
            await answer(scope, send, entry.say(pages.FULL, request))
        except DatabaseError as problem:
            log.warning("endpoint_unknown", endpoint=request.slug, problem=type(problem).__name__)
            await answer(scope, send, entry.say(pages.AWAY, request))

    async def _serve(self, request: Asked, scope: Scope, receive: Receive, send: Send) -> None:
        if request.path.startswith(addresses.OWN):
            await answer(scope, send, await entry.own_page(request))
            return
        if request.crosses_origins:
            await answer(scope, send, entry.say(pages.FOREIGN, request))
            return
        standing = await self._standing(request)
        if standing.door is Door.OPEN:
            with self.places.of(standing.person):
                await self._pass(request, standing, scope, receive, send)
        elif standing.door is Door.STRANGER and request.wants_page:
            await answer(scope, send, entry.to_console(request, request.target))
        else:
            if standing.door is Door.FORBIDDEN:
                await aside(visits.refused, request.slug, request.client, standing.person)
            await answer(scope, send, entry.say(SAYS[standing.door], request, standing))

    async def _pass(
        self, request: Asked, standing: Standing, scope: Scope, receive: Receive, send: Send
    ) -> None:
        right = Right(standing, lambda: self._standing(request))
        if request.websocket:
            said = await self._passage.websocket(request, right, scope["subprotocols"], receive, send)
        else:
            said = await self._passage.http(request, right, receive, send)
        if said is not None:
            await answer(scope, send, entry.say(said, request, standing))

    async def _standing(self, request: Asked) -> Standing:
        return await self._standings.get((request.slug, request.cookies.visits))


async def _ask(key: tuple[str, tuple[str, ...]]) -> Standing:
    return await aside(visits.standing, *key)
