"""Connections to jobs: each new one is made to the replica's own processes.

One that is kept leads to whom it led before, so it is used again only for the same replica and port.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import aiohttp

from jobs.access import connections
from jobs.access.connections import NotListening, Unchecked
from jobs.access.gateway.visits import EndpointAccess

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.tracing import Trace


class Unconnected(aiohttp.ClientConnectionError):
    """There is no connection to the replica, because of `problem`."""

    def __init__(self, problem: NotListening | Unchecked) -> None:
        super().__init__(str(problem))
        self.problem = problem


destination: Final[ContextVar[EndpointAccess]] = ContextVar("destination")
"""The endpoint to which the request of this task goes."""


class JobConnector(aiohttp.BaseConnector):
    """Connects to where `destination` leads, whatever the URL's host is called; `name_of` calls it."""

    def __init__(self, keep_seconds: float) -> None:
        super().__init__(limit=0, keepalive_timeout=keep_seconds)

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 the parameter is aiohttp's
    ) -> ResponseHandler:
        access = destination.get()
        try:
            made = await connections.connect(access.replica, access.host, access.port)
        except (NotListening, Unchecked) as problem:
            raise Unconnected(problem) from problem
        try:
            _transport, protocol = await self._loop.create_connection(self._factory, sock=made)
        except BaseException:
            made.close()
            raise
        return protocol


def name_of(access: EndpointAccess) -> str:
    """Return the name by which connections to a replica are kept apart from all others."""
    return f"replica-{access.replica}.invalid"
