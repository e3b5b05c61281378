"""The services of an attempt's own network: names, the service address, and sockets made for the console."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Final

from jobs.node import processes
from jobs.node.agent.launcher import Launcher
from jobs.node.files import Folder
from jobs.node.network import attempt_network, names, resolver, service, sockets
from jobs.node.network.attempt_network import AttemptNetwork
from jobs.node.network.namespaces import make_inside
from jobs.node.network.resolver import ResolverServer, Upstream
from jobs.node.network.service import ServiceProxy
from jobs.node.sandbox import running_replica
from jobs.node.sandbox.running_replica import ReplicaUnavailable
from jobs.node.supervisor.plan import Plan, PlannedReplica

CONSOLE: Final = Path("run", "job-service.sock")
"""Where the console serves jobs, below its home, which is beside the root of attempts."""

_BACKLOG: Final = 64


class AttemptServices:
    """The network of one attempt, if it has one, and what is served there while the agent runs."""

    def __init__(self, path: Path, folder: Folder, plan: Plan, launcher: Launcher) -> None:
        self._path, self._folder, self._plan, self._launcher = path, folder, plan, launcher
        self._network: AttemptNetwork | None = None
        self._opening = asyncio.Lock()
        self._resolver: ResolverServer | None = None
        self._proxy: asyncio.Task[None] | None = None
        self._spaces: dict[int, int] = {}

    async def open(self) -> AttemptNetwork | None:
        """Return the network, made once somebody needs it, or None in the host's; OSError."""
        async with self._opening:
            if self._network is None and self._plan.network is not None:
                await self._launcher.make_network(self._path)
                await self._adopt()
            return self._network

    async def adopt(self) -> None:
        """Serve again in a network that an earlier agent left; one that can't be had is made anew later."""
        if self._plan.network is not None:
            try:
                await self._adopt()
            except OSError:
                return

    async def _adopt(self) -> None:
        found = await asyncio.to_thread(AttemptNetwork.adopt, self._folder, self._plan)
        if found is None:
            return
        try:
            await self._serve(found)
        except BaseException:
            self._stop_serving()
            found.close()
            raise
        self._network = found

    async def remove(self) -> None:
        """Remove the network, which nobody needs any more."""
        self._stop_serving()
        network, self._network = self._network, None
        if network is not None:
            await asyncio.to_thread(network.remove)
        elif self._plan.network is not None:
            await asyncio.to_thread(attempt_network.remove, self._folder, self._plan)

    def close(self) -> None:
        """Let go of everything; the network stays."""
        self._stop_serving()
        for position in list(self._spaces):
            self.forget(position)
        if self._network is not None:
            self._network.close()
            self._network = None

    # --- what is served there ---------------------------------------------------------------------------

    async def _serve(self, network: AttemptNetwork) -> None:
        def listen() -> list[int]:
            address = names.RESOLVER
            datagrams = _bind(socket.SOCK_DGRAM, address, resolver.PORT)
            return [datagrams, *(_bind(socket.SOCK_STREAM, address, port) for port in _STREAM_PORTS)]

        made = make_inside(network.user, network.net, listen)
        datagrams, streams, requests = (socket.socket(fileno=fd) for fd in made)
        for each in (datagrams, streams, requests):
            each.setblocking(False)
        assert self._plan.network is not None
        upstream = Upstream(self._plan.network.egress)
        found = names.find_addresses(self._plan)
        self._resolver = await resolver.serve(datagrams, streams, found, upstream)
        proxy = ServiceProxy.of(requests, self._plan, self._path.parents[2] / CONSOLE)
        self._proxy = asyncio.get_running_loop().create_task(proxy.serve())

    def _stop_serving(self) -> None:
        if self._resolver is not None:
            self._resolver.close()
        if self._proxy is not None:
            self._proxy.cancel()
        self._resolver = self._proxy = None

    # --- sockets ----------------------------------------------------------------------------------------

    async def make_socket(self, place: PlannedReplica, family: int) -> int:
        """Return the descriptor of a new TCP socket in a replica's network.

        Raises ReplicaUnavailable when the replica does not run, and OSError.
        """
        network = self._network
        if network is None:
            raise ReplicaUnavailable("failed", "the replica has no network of its own")
        if place.position not in self._spaces:
            found = await asyncio.to_thread(self._find_space, place)
            if (space := self._spaces.setdefault(place.position, found)) != found:
                os.close(found)
        space = self._spaces[place.position]

        def make() -> list[int]:
            return [socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC).detach()]

        return make_inside(network.user, space, make)[0]

    def forget(self, position: int) -> None:
        """Make no more sockets for a replica that has ended."""
        if (space := self._spaces.pop(position, None)) is not None:
            os.close(space)

    def _find_space(self, place: PlannedReplica) -> int:
        """Open the network namespace of a running replica's processes."""
        first = self._find_first(place)
        held = processes.hold(first)
        if held is None:
            raise ReplicaUnavailable("not_running")
        try:
            space = sockets.open_foreign(first)
            try:
                if self._find_first(place) != first or processes.over(held):  # the number may be another's
                    raise ReplicaUnavailable("not_running")
            except BaseException:
                os.close(space)
                raise
            return space
        finally:
            os.close(held)

    def _find_first(self, place: PlannedReplica) -> int:
        return running_replica.find_running(self._path, place.role.name, place.index).first


_STREAM_PORTS: Final = (resolver.PORT, service.PORT)


def _bind(kind: socket.SocketKind, address: str, port: int) -> int:
    made = socket.socket(socket.AF_INET, kind)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        if kind is socket.SOCK_STREAM:
            made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made.detach()
