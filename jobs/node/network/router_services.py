"""Servers in the routers of attempts: their resolvers and their service addresses.

All of it is served by one event loop, in a thread of the agent, which opens it for each attempt that it looks
after.  What a job sends is bounded by both servers.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

from jobs.node.network import names, resolver, service
from jobs.node.network.attempt_network import AttemptNetwork
from jobs.node.network.namespaces import make_inside
from jobs.node.network.resolver import ResolverServer, Upstream
from jobs.node.network.rules import SERVICE
from jobs.node.network.service_proxy import ServiceProxy
from jobs.node.supervisor.plan import Plan

T = TypeVar("T")

_TIMEOUT_S: Final = 10.0
_BACKLOG: Final = 128


class RouterServices:
    """Serves attempts by their keys; `console` is the path of the Unix socket for jobs' requests.

    It may be called from any thread but its own.
    """

    def __init__(self, console: Path) -> None:
        self._console = console
        self._open: dict[str, tuple[ResolverServer, asyncio.Task[None]]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="router-services", daemon=True)
        self._thread.start()

    def open(self, plan: Plan, network: AttemptNetwork) -> None:
        """Serve an attempt with a network of its own, unless it is served already.  Raises OSError."""
        if plan.key not in self._open:
            files = make_inside(network.user, network.net, _make_sockets)
            self._run(self._start(plan, *(socket.socket(fileno=file) for file in files)))

    def close(self, key: str) -> None:
        """Serve an attempt no more; one that is not served is fine."""
        self._run(self._stop(key))

    def end(self) -> None:
        """Serve nobody any more."""
        for key in list(self._open):
            self.close(key)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT_S)

    async def _start(
        self, plan: Plan, datagrams: socket.socket, streams: socket.socket, requests: socket.socket
    ) -> None:
        assert plan.network is not None
        upstream = Upstream(plan.network.egress)
        served = await resolver.serve(datagrams, streams, names.find_addresses(plan), upstream)
        proxy = ServiceProxy.of(requests, plan, self._console)
        self._open[plan.key] = served, asyncio.ensure_future(proxy.serve())

    async def _stop(self, key: str) -> None:
        served, proxy = self._open.pop(key, (None, None))
        if served is not None and proxy is not None:
            served.close()
            proxy.cancel()
            await asyncio.gather(proxy, return_exceptions=True)


def _make_sockets() -> list[int]:
    """Return sockets for queries by UDP and TCP, and for requests; called in a router's network.

    Requests come to both of its addresses: the packet filter drops those to any other one.
    """
    made: list[socket.socket] = []
    try:
        made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        made[0].bind((str(SERVICE), resolver.PORT))
        places = ((str(SERVICE), resolver.PORT), ("", service.PORT))
        made.extend(socket.create_server(place, backlog=_BACKLOG) for place in places)
    except BaseException:
        for each in made:
            each.close()
        raise
    for each in made:
        each.setblocking(False)
    return [each.detach() for each in made]
