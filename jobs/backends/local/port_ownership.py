"""Ownership of the ports and addresses that all jobs of a machine share, where they share its network.

What listens at the machine's loopback may be the console, its database, or somebody else's job.  A port is
the replica's while its processes hold every socket that a connection could reach there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobs.backends.base import ReplicaRef
from jobs.backends.sessions import Barrier, NoEntry
from jobs.node import listening_sockets
from jobs.node.listening_sockets import Listener
from jobs.node.process_trees import ProcessTable
from jobs.node.sandbox import running_replica
from jobs.node.sandbox.running_replica import ReplicaUnavailable

_TRIES: Final = 2
"""A process may begin just while it is looked for."""

_MOST_KNOWN: Final = 4096
_known: Final[dict[tuple[Path, ReplicaRef, frozenset[int]], None]] = {}
"""Sockets that were the replicas' own: a socket's number is never given to another."""


@dataclass(frozen=True, slots=True)
class OwnListener:
    """An address to connect to, and the numbers of the replica's sockets that accept what arrives there."""

    address: str
    sockets: frozenset[int]


def find_listener(attempt: Path, ref: ReplicaRef, port: int) -> OwnListener:
    """Return where the replica alone listens on `port`.  Raises NoEntry."""
    found = list(_listeners(listening_sockets.list_listeners_on(port)))
    if known := next((each for each in found if (attempt, ref, each.sockets) in _known), None):
        return known
    if not (owned := _find_owned(attempt, ref, found)):
        raise NoEntry(Barrier.NOT_ITS_OWN, str(port))
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[attempt, ref, owned.sockets] = None
    return owned


def _listeners(sockets: Sequence[Listener]) -> Iterator[OwnListener]:
    """Yield the addresses at which any of the sockets listens, with all that accept connections there."""
    for each in sockets:
        accepting = listening_sockets.accepting_sockets(sockets, each.reachable_at, each.port)
        yield OwnListener(each.reachable_at, frozenset(one.inode for one in accepting))


def _find_owned(attempt: Path, ref: ReplicaRef, found: Iterable[OwnListener]) -> OwnListener | None:
    """Return the first of them whose sockets are all held by processes of the replica."""
    try:
        replica = running_replica.find_running(attempt, ref.role, ref.index)
    except ReplicaUnavailable as error:
        raise NoEntry(Barrier(error.barrier), error.detail) from error
    except OSError as error:
        raise NoEntry(Barrier.NOT_RUNNING, str(error)) from error
    for _try in range(_TRIES):
        held = listening_sockets.sockets_of(replica.pids(ProcessTable()))
        if owned := next((each for each in found if each.sockets <= held), None):
            return owned
    return None
