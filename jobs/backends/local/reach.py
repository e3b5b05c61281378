"""Which of the addresses that all jobs of a machine share are a replica's own.

Jobs share the machine's network, and with it its loopback: what listens there may be the console, its
database, or somebody else's job.  A port is the replica's while one of its processes listens on it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from jobs.backends.base import TaskRef
from jobs.backends.sessions import Barrier, NoEntry
from jobs.node import listening
from jobs.node.sandbox import inside
from jobs.node.sandbox.inside import Replica, Shut


def address(attempt: Path, task: TaskRef, host: str, port: int) -> tuple[str, int]:
    """Where to connect to for `host`:`port` as the replica would.  Raises NoEntry."""
    replica = _replica(attempt, task)
    if not _itself(replica, host):
        raise NoEntry(Barrier.NOT_ITS_OWN, host)
    found = listening.address_of(port, listening.sockets_of(replica.pids()))
    if found is None:
        raise NoEntry(Barrier.NOT_ITS_OWN, f"{host}:{port}")
    return found, port


def _replica(attempt: Path, task: TaskRef) -> Replica:
    try:
        return inside.find(attempt, task.role, task.index)
    except Shut as error:
        raise NoEntry(Barrier(error.barrier), error.detail) from error
    except OSError as error:
        raise NoEntry(Barrier.NOT_RUNNING, str(error)) from error


def listener(attempt: Path, task: TaskRef, host: str, port: int) -> str:
    """Return what tells the sockets apart that a connection to `host`:`port` would reach.

    All of them have to be the replica's.  Raises NoEntry.
    """
    found = frozenset(each.inode for each in listening.takers(listening.listeners_on(port), host, port))
    key = (str(attempt), task, found)
    if not found or not (key in _known or _holds(attempt, task, found)):
        raise NoEntry(Barrier.NOT_ITS_OWN, f"{host}:{port}")
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[key] = None
    return " ".join(map(str, sorted(found)))


_MOST_KNOWN: Final = 4096
_known: Final[dict[tuple[str, TaskRef, frozenset[int]], None]] = {}
"""Sockets that were the replicas' own: a socket's number is never given to another."""


def _holds(attempt: Path, task: TaskRef, sockets: AbstractSet[int]) -> bool:
    """Whether processes of the replica hold all of these sockets."""
    replica = _replica(attempt, task)
    return any(sockets <= listening.sockets_of(replica.pids()) for _try in range(_TRIES))


_TRIES: Final = 2
"""A process may begin just while it is looked for."""


def _itself(replica: Replica, host: str) -> bool:
    """Whether `host` is what the replica calls itself."""
    house = replica.errand.plan.house
    if host.lower() in {"localhost", house.host_ip, house.node.lower()}:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
