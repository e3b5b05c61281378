"""Connections to jobs: each new one is made only while the replica itself listens at its end.

Jobs share their machine's network, so a port that was one job's may be another's a moment later.  Whose it is
is asked before a connection and after it, and a connection that reached another listener is closed unused.
One that is kept leads to whom it led before, so it is used again only for the same replica.
"""

from __future__ import annotations

import socket
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from django.conf import settings

from jobs.access import sessions
from jobs.access.gateway.client_sessions import LazySession
from jobs.access.gateway.visits import EndpointAccess

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.tracing import Trace

ASK_SECONDS: Final = 10.0


class NotListening(aiohttp.ClientConnectionError):
    """The replica does not listen on its port now."""


class Unchecked(aiohttp.ClientConnectionError):
    """Nothing can tell which process listens."""


destination: Final[ContextVar[EndpointAccess]] = ContextVar("destination")
"""The endpoint to which the request of this task goes."""


class Listeners:
    """Asks `jobs.access.terminal_gateway`, which knows the backends."""

    def __init__(self) -> None:
        self._session = LazySession(
            lambda: aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(str(settings.CONSOLE_HOME / sessions.SOCKET), limit=0),
                timeout=aiohttp.ClientTimeout(total=ASK_SECONDS),
            )
        )
        self.close = self._session.close

    async def ask(self, access: EndpointAccess) -> str:
        """Return a word for what listens there, which another would change, if it is the replica's own.

        Raises NotListening or Unchecked.
        """
        path = f"{access.replica}/{quote(access.host, safe='')}/{access.port}"
        try:
            async with self._session.get().get(f"http://shells/listeners/{path}") as answer:
                if answer.status == 404:
                    raise NotListening
                if answer.status != 200:
                    raise Unchecked(f"status {answer.status}")
                return await answer.text()
        except (NotListening, Unchecked):
            raise
        except (aiohttp.ClientError, OSError) as error:
            raise Unchecked(type(error).__name__) from error


class JobConnector(aiohttp.TCPConnector):
    """Connects to where `destination` leads, whatever the URL's host is called; `name_of` calls it."""

    def __init__(self, listeners: Listeners, keep_seconds: float) -> None:
        super().__init__(limit=0, keepalive_timeout=keep_seconds, resolver=_Resolver(), use_dns_cache=False)
        self._listeners = listeners

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 the parameter is aiohttp's
    ) -> ResponseHandler:
        access = destination.get()
        before = await self._listeners.ask(access)
        made = await super()._create_connection(req, traces, timeout)
        try:
            if await self._listeners.ask(access) != before:
                raise NotListening
        except BaseException:
            made.close()
            raise
        return made


def name_of(access: EndpointAccess) -> str:
    """Return the name by which connections to a replica are kept apart from all others."""
    return f"replica-{access.replica}.invalid"


class _Resolver(AbstractResolver):
    """Finds the host of `destination`."""

    def __init__(self) -> None:
        self._hosts = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return await self._hosts.resolve(destination.get().host, port, family)

    async def close(self) -> None:
        await self._hosts.close()
