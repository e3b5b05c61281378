"""Listening sockets of replicas in a network of their own: whatever listens there is the replica's.

The kernel walks through every connection of the machine to list the sockets of one network, which takes
milliseconds.  How many there are it tells at once, so they are only listed when that has changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from jobs.node import listening_sockets, processes
from jobs.node.listening_sockets import Listener
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.readiness_probe import Answer, Target
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.states import Reason

LIST_AGAIN_S: Final = 60.0
"""As many sockets as before may be others."""

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
        for one in running:
            if one.started is not None and (one.place.role.labels or one in owners):
                self._networks[one.place.position].look(one.started["pid"])

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
    """The listening sockets in one replica's network, as read from `pid`, one of its processes."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.listeners: tuple[Listener, ...] = ()
        self._network: tuple[int, int] | None = None
        self._counts: list[int] = []
        self._listed_at = 0.0

    def look(self, wrapper: int) -> None:
        """Read them again, from the process that was known or another one below the wrapper."""
        try:
            self._refresh(wrapper)
        except (OSError, ValueError):  # it has ended just now
            self.pid, self.listeners, self._counts = None, (), []

    def _refresh(self, wrapper: int) -> None:
        if self.pid is None or _network_of(self.pid) != self._network:
            self._find(wrapper)
        if self.pid is None:
            self.listeners, self._counts = (), []
            return
        counts, now = [_count_sockets(self.pid, name) for name in _COUNTS], time.monotonic()
        if not any(counts):
            self.listeners = ()
        elif counts != self._counts or now - self._listed_at >= LIST_AGAIN_S:
            self.listeners = tuple(listening_sockets.list_listeners(self.pid))
            self._listed_at = now
        self._counts = counts

    def _find(self, wrapper: int) -> None:
        """Find a process of the replica; its wrapper and what prepares it are in the host's network."""
        self.pid = None
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
