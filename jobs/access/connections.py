"""Connections to what running replicas serve: backends make each to the replica's own processes alone."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

import structlog
from django.db import DatabaseError

from jobs import clusters
from jobs.access.sessions import EntryRefused
from jobs.backends.base import Handle, ReplicaRef, Unreachable
from jobs.backends.remote.port_agent import close_agents
from jobs.backends.sessions import Barrier, Enterable, NoEntry
from jobs.live.thread_pool import run_in_thread
from jobs.models import Replica

__all__ = ["NotListening", "Unchecked", "backend_of", "close_agents", "connect", "connect_blocking"]

log = structlog.get_logger(__name__)

_NOT_LISTENING: Final = frozenset({Barrier.NOT_ITS_OWN, Barrier.NOT_RUNNING, Barrier.GONE})


class NotListening(Exception):
    """The replica does not listen on its port now."""


class Unchecked(Exception):
    """Nothing can tell now which process listens there."""


async def connect(replica: int, host: str, port: int) -> socket.socket:
    """Return a connected, non-blocking socket to `host`:`port` of the replica with this primary key.

    Call `close_agents` before the event loop ends.  Raises NotListening, Unchecked, or TimeoutError where the
    replica listens and accepts nothing.
    """
    try:
        found = await run_in_thread(_find_replica, replica)
    except DatabaseError as error:
        raise Unchecked(type(error).__name__) from error
    return await _connect(found, host, port)


def connect_blocking(replica: Replica, host: str, port: int, timeout_s: float) -> socket.socket:
    """Return a connected socket as `connect` does, for a thread without an event loop."""

    async def run() -> socket.socket:
        try:
            async with asyncio.timeout(timeout_s):
                return await _connect(replica, host, port)
        finally:
            await close_agents()

    made = asyncio.run(run())
    made.settimeout(timeout_s)
    return made


async def _connect(replica: Replica | None, host: str, port: int) -> socket.socket:
    if replica is None:
        raise NotListening("not_running")
    try:
        ref = ReplicaRef(replica.role, replica.index, replica.run)
        return await backend_of(replica).connect(Handle(replica.attempt.handle), ref, host, port)
    except EntryRefused as refused:
        raise Unchecked(refused.code) from refused
    except NoEntry as refused:
        if refused.barrier in _NOT_LISTENING:
            log.info("connection_refused", port=port, why=str(refused))
            raise NotListening(refused.barrier) from refused
        log.warning("connection_unchecked", port=port, problem=str(refused))
        raise Unchecked(refused.barrier) from refused
    except Unreachable as error:
        log.warning("connection_unchecked", port=port, problem=repr(error))
        raise Unchecked(type(error).__name__) from error


def backend_of(replica: Replica) -> Enterable:
    """Return the backend that can enter the replica.  Raises EntryRefused."""
    try:
        backend = clusters.backend_for(replica.attempt.job.cluster)
    except Exception as error:  # whatever an admin wrote there
        log.warning("entry_without_backend", problem=repr(error))
        raise EntryRefused("no_exec") from error
    if not isinstance(backend, Enterable):
        raise EntryRefused("no_exec")
    return backend


def _find_replica(pk: int) -> Replica | None:
    return Replica.objects.select_related("attempt__job__cluster").filter(pk=pk).first()
