"""Listening sockets of replicas in a network of their own: whatever listens there is the replica's.

The kernel is asked by a socket that was made there, which only a replica gets that has sockets at all: most
have none, and how many there are the kernel tells at once.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from jobs.node import listening_sockets, processes, socket_diag
from jobs.node.listening_sockets import Listener
from jobs.node.network.sockets import open_inside
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.readiness_probe import Answer, Target
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.states import Reason

MOST_SOCKETS: Final = 4096
"""Of one replica; a job may have any number."""

FIND_AGAIN_S: Final = 1.0
"""How old the table of processes may be in which those of a replica are looked for."""

_COUNTS: Final = ("sockstat", "sockstat6")
_COUNT: Final = "inuse"
_TCP: Final = "TCP"


class OwnSockets:
    """The listening sockets of each replica of an attempt."""

    too_many: Reason | None = None

    def __init__(self, plan: Plan) -> None:
        self._networks = {place.position: ReplicaSockets() for place in plan.replicas()}

    def look(self, running: Sequence[ReplicaHandle], owners: Collection[ReplicaHandle]) -> None:
        """Read them again for those that were asked for ports, and for `owners`."""
        live = {one.place.position for one in running}
        for position in self._networks.keys() - live:
            self._networks[position].close()
        for one in running:
            if one.started is not None and (one.place.role.labels or one in owners):
                self._networks[one.place.position].look(one.started["pid"])

    def close(self) -> None:
        """Let go of the replicas' networks."""
        for network in self._networks.values():
            network.close()

    def find_target(self, one: ReplicaHandle, port: int, *, is_asked: bool) -> Target | None:
        """Return the address, in the replica's network, at which it listens on a port."""
        network = self._networks[one.place.position]
        found = next((each for each in network.listeners if each.port == port), None)
        return Target(found.reachable_at, network.pid) if found else None

    def list_ports(self, one: ReplicaHandle) -> set[int]:
        """Return every port on which something listens in the replica."""
        return {each.port for each in self._networks[one.place.position].listeners}

    def find_obstacle(self, one: ReplicaHandle, port: int) -> Answer | None:
        """Return nothing: nobody else is in the replica's network."""
        return None


class ReplicaSockets:
    """The listening sockets in one replica's network; `pid` is one of its processes."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.listeners: tuple[Listener, ...] = ()
        self._network: tuple[int, int] | None = None
        self._diag: socket.socket | None = None

    def look(self, wrapper: int) -> None:
        """Read them again, by the process that was known or another one below the wrapper."""
        try:
            if self.pid is None or _network_of(self.pid) != self._network:
                self._find(wrapper)
            has_any = self.pid is not None and any(_count_sockets(self.pid, name) for name in _COUNTS)
            self.listeners = tuple(self._list()) if has_any else ()
        except (OSError, ValueError):  # it has ended just now
            self.close()

    def close(self) -> None:
        """Let go of its network."""
        self.pid, self.listeners = None, ()
        if self._diag is not None:
            self._diag.close()
            self._diag = None

    def _list(self) -> list[Listener]:
        if self._diag is None:
            assert self.pid is not None
            self._diag = socket.socket(fileno=open_inside(self.pid, socket_diag.open_diag))
        found = listening_sockets.list_listeners_by(self._diag, MOST_SOCKETS)
        if len(found) == MOST_SOCKETS:
            self._diag.close()
            self._diag = None
        return found

    def _find(self, wrapper: int) -> None:
        """Find a process of the replica; its wrapper and what prepares it are in the host's network."""
        self.close()
        ours = _network_of(os.getpid())
        for pid in _process_table.descendants(wrapper):
            network = _network_of(pid)
            if network not in (None, ours):
                self.pid, self._network = pid, network
                return


def _network_of(pid: int) -> tuple[int, int] | None:
    """Return what tells the process' network namespace from others; None where it is not to be seen."""
    try:
        found = Path(f"/proc/{pid}/ns/net").stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _count_sockets(pid: int, name: str) -> int:
    """Return how many TCP sockets are in use, listening ones among them, of IPv4 or IPv6."""
    text = Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii")
    words = next(line.split() for line in text.splitlines() if line.startswith(_TCP))
    return int(words[words.index(_COUNT) + 1])


class ProcessTable:
    """The processes of this machine, listed once for all replicas that look for theirs at about one time."""

    def __init__(self) -> None:
        self._children: dict[int, list[int]] = {}
        self._made_at = 0.0

    def descendants(self, pid: int) -> Iterator[int]:
        """Yield the processes below one, children first."""
        if time.monotonic() - self._made_at >= FIND_AGAIN_S:
            self._children = {}
            for child, parent in processes.parents().items():
                self._children.setdefault(parent, []).append(child)
            self._made_at = time.monotonic()
        below = self._children.get(pid, [])
        while below:
            yield from below
            below = [child for parent in below for child in self._children.get(parent, ())]


_process_table: Final = ProcessTable()
