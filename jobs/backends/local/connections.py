"""Connections of the console to what a replica on this machine serves.

A socket of a replica with a network of its own is made in that network, by the agent, so that only the
replica's own processes can be at its other end.  In the machine's network it is asked before the connection
and after it who listens: a port may be another job's a moment later.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jobs.backends.base import ReplicaRef
from jobs.backends.local import port_ownership, replica_sockets
from jobs.backends.sessions import Barrier, NoEntry
from jobs.backends.sockets import connect_socket, open_connection
from jobs.node import listening_sockets
from jobs.node.network.names import find_addresses
from jobs.node.supervisor.layout import Layout
from jobs.node.supervisor.plan import Plan, UnknownFormat, address_of


@dataclass(frozen=True, slots=True)
class ReplicaAddress:
    """The names that a replica has for itself, and its address in a network of its own, "" in the host's."""

    names: frozenset[str]
    address: str

    def is_own_name(self, host: str) -> bool:
        """Tell whether `host` means the replica itself."""
        return host.lower() in self.names or listening_sockets.is_loopback(host)


async def connect(layout: Layout, key: str, ref: ReplicaRef, host: str, port: int) -> socket.socket:
    """Return a connected socket to the replica's own service.  See `sessions.Enterable.connect`."""
    attempt = layout.attempt(key)
    replica = await asyncio.to_thread(_find_address, attempt, ref)
    if not replica.is_own_name(host):
        raise NoEntry(Barrier.NOT_ITS_OWN, host)
    try:
        if replica.address:
            return await _connect_inside(layout, key, ref, replica.address, port)
        return await _connect_on_host(attempt, ref, port)
    except (ConnectionRefusedError, OverflowError) as error:
        raise NoEntry(Barrier.NOT_ITS_OWN, f"{host}:{port}") from error
    except TimeoutError:
        raise
    except OSError as error:
        raise NoEntry(Barrier.FAILED, repr(error)) from error


async def _connect_inside(
    layout: Layout, key: str, ref: ReplicaRef, address: str, port: int
) -> socket.socket:
    """Connect to whichever of the replica's addresses is listened on, loopback first."""
    for here in ("127.0.0.1", "::1", address):
        family = socket.AF_INET6 if ":" in here else socket.AF_INET
        made = await asyncio.to_thread(replica_sockets.make_socket, layout.root, key, ref, family)
        try:
            return await connect_socket(made, here, port)
        except TimeoutError:
            raise
        except OSError:
            continue
    raise ConnectionRefusedError


async def _connect_on_host(attempt: Path, ref: ReplicaRef, port: int) -> socket.socket:
    """Connect, unless another takes the port meanwhile."""
    before = await asyncio.to_thread(port_ownership.find_listener, attempt, ref, port)
    made = await open_connection(before.address, port)
    try:
        if await asyncio.to_thread(port_ownership.find_listener, attempt, ref, port) != before:
            raise NoEntry(Barrier.NOT_ITS_OWN, str(port))
    except BaseException:
        made.close()
        raise
    return made


@lru_cache(maxsize=4096)
def _find_address(attempt: Path, ref: ReplicaRef) -> ReplicaAddress:
    """Read it from the attempt's plan, which never changes.  Raises NoEntry."""
    try:
        plan = Plan.read(attempt)
    except UnknownFormat as error:
        raise NoEntry(Barrier.FAILED, repr(error)) from error
    replica = plan.replica(ref.role, ref.index) if plan is not None else None
    if plan is None or replica is None:
        raise NoEntry(Barrier.NOT_RUNNING)
    names = {plan.house.host_ip.lower(), plan.house.node.lower()}
    if plan.network is None:
        return ReplicaAddress(frozenset(names), "")
    own = address_of(plan.network, replica.position)
    names |= {name for name, address in find_addresses(plan).items() if address == own}
    return ReplicaAddress(frozenset({*names, own}), own)
