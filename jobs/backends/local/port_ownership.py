"""Ownership of the ports and addresses that all jobs of a machine share.

Jobs share the machine's network, and with it its loopback: what listens there may be the console, its
database, or somebody else's job.  A port is the replica's while one of its processes listens on it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from jobs.backends.base import ReplicaRef
from jobs.backends.sessions import Barrier, NoEntry
from jobs.node import listening_sockets
from jobs.node.sandbox import running_replica
from jobs.node.sandbox.running_replica import ReplicaUnavailable, RunningReplica


def address(attempt: Path, ref: ReplicaRef, host: str, port: int) -> tuple[str, int]:
    """Return where to connect to for `host`:`port` as the replica would.  Raises NoEntry."""
    replica = _replica(attempt, ref)
    if not _itself(replica, host):
        raise NoEntry(Barrier.NOT_ITS_OWN, host)
    found = listening_sockets.address_of(port, listening_sockets.sockets_of(replica.pids()))
    if found is None:
        raise NoEntry(Barrier.NOT_ITS_OWN, f"{host}:{port}")
    return found, port


def _replica(attempt: Path, ref: ReplicaRef) -> RunningReplica:
    try:
        return running_replica.find_running(attempt, ref.role, ref.index)
    except ReplicaUnavailable as error:
        raise NoEntry(Barrier(error.barrier), error.detail) from error
    except OSError as error:
        raise NoEntry(Barrier.NOT_RUNNING, str(error)) from error


def listener(attempt: Path, ref: ReplicaRef, host: str, port: int) -> str:
    """Return what tells the sockets apart that a connection to `host`:`port` would reach.

    All of them have to be the replica's.  Raises NoEntry.
    """
    found = frozenset(
        each.inode
        for each in listening_sockets.accepting_sockets(listening_sockets.list_listeners_on(port), host, port)
    )
    key = (str(attempt), ref, found)
    if not found or not (key in _known or _holds(attempt, ref, found)):
        raise NoEntry(Barrier.NOT_ITS_OWN, f"{host}:{port}")
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = None
    return " ".join(map(str, sorted(found)))


_MOST_KNOWN: Final = 4096
_known: Final[dict[tuple[str, ReplicaRef, frozenset[int]], None]] = {}
"""Sockets that were the replicas' own: a socket's number is never given to another."""


def _holds(attempt: Path, ref: ReplicaRef, sockets: AbstractSet[int]) -> bool:
    """Tell whether processes of the replica hold all of these sockets."""
    replica = _replica(attempt, ref)
    return any(sockets <= listening_sockets.sockets_of(replica.pids()) for _try in range(_TRIES))


_TRIES: Final = 2
"""A process may begin just while it is looked for."""


def _itself(replica: RunningReplica, host: str) -> bool:
    """Tell whether `host` is what the replica calls itself."""
    house = replica.launch.plan.house
    return host.lower() in {house.host_ip, house.node.lower()} or listening_sockets.is_loopback(host)
