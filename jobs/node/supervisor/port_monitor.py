"""Ports that replicas serve: those that the job file requests, announced ones, and those found.

A port that was asked for is kept free for the replica, so whoever listens there is taken for it.  Of any
other port nothing is believed: it counts while the very socket that a connection from the console would reach
belongs to a process of the replica.  Otherwise a job could announce, as its own, what others listen on.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from jobs.node import listening_sockets
from jobs.node.listening_sockets import Listener
from jobs.node.sandbox import running_replica
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor.announced_ports import AnnouncedPort, AnnouncementFile
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.readiness_probe import Answer, ReadinessProbe
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.states import Params, PortSource, Reason, ReasonCode, Unready

PATIENCE_S: Final = 10.0
"""How long after its start a replica is left alone before what keeps its ports silent is looked for."""

MOST_SEARCHED: Final = 16
"""In an attempt with more replicas nothing is found that was not announced."""

MOST_FOUND: Final = 8
MOST_ANNOUNCED: Final = 256
"""In all of an attempt."""

_TRIES: Final = 3
"""A process may begin just while it is looked for."""


@dataclass(frozen=True, slots=True)
class Served:
    """One port of a replica; `why` and `params` say what it lacks, both empty once it is ready."""

    label: str
    port: int
    source: PortSource = PortSource.ASKED
    path: str = ""
    token: str = ""
    why: str = ""
    params: Params = field(default_factory=dict)

    def dump(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


class PortMonitor:
    """Looks at the ports of an attempt's replicas."""

    def __init__(self, path: Path, plan: Plan, handles: Sequence[ReplicaHandle]) -> None:
        house = plan.house
        self._handles, self._host = handles, house.host_ip
        self._searches = len(handles) <= MOST_SEARCHED
        self._owners = SocketOwners(path)
        self._ephemeral = listening_sockets.ephemeral()
        persons = house.isolation == Isolation.PERSONS and not house.engine
        self._uid = plan.uid if persons else None
        self._boards = {
            one.place.position: AnnouncementFile(path / "work" / one.place.name, self._uid) for one in handles
        }
        self._range = range(house.port_range[0], house.port_range[1] + 1) if house.port_range else range(0)
        self._most_ports = house.most_ports
        self.too_many: Reason | None = None
        self._said: dict[int, tuple[AnnouncedPort, ...]] = {}
        self._asking: dict[int, ReadinessProbe] = {}

    def expects(self) -> bool:
        """Read what the jobs announce; whether anything is to be looked for."""
        left = MOST_ANNOUNCED
        for one in self._handles:
            said = self._boards[one.place.position].read()[:left] if one.running else ()
            self._said[one.place.position] = said
            left -= len(said)
        return left < MOST_ANNOUNCED or any(one.place.role.labels for one in self._handles if one.running)

    def look(self) -> bool:
        """Tell whether anything is served otherwise than at the last look."""
        table = listening_sockets.list_listeners()
        running = [one for one in self._handles if one.running]
        wide = [each for each in table if each.port in self._range and self._uid in (None, each.uid)]
        crowded = len(wide) > self._most_ports > 0
        known = (
            running
            if self._searches or crowded
            else [one for one in running if self._said[one.place.position]]
        )
        self._owners.learn({each.inode for each in table if self._uid in (None, each.uid)}, known)
        self.too_many = self._count(running, wide) if crowded else None
        changed = False
        for one in self._handles:
            served = tuple(self._look_at(one, table)) if one.running else ()
            changed |= served != one.served
            one.served = served
        self._forget_questions()
        return changed

    def _count(self, running: Sequence[ReplicaHandle], wide: Sequence[Listener]) -> Reason | None:
        """Return why the attempt is to end: a replica listens on too many ports that it was not given."""
        for one in running:
            given = {port for ports in one.place.slot.ports.values() for port in ports}
            ports = {each.port for each in wide if self._owners.has(one, each)} - given
            if len(ports) > self._most_ports:
                where: Params = {"role": one.place.role.name, "index": one.place.index}
                params: Params = {**where, "ports": len(ports), "most": self._most_ports}
                return Reason(ReasonCode.TOO_MANY_PORTS, params)
        return None

    def close(self) -> None:
        """Ask nothing more."""
        for asking in self._asking.values():
            asking.close()
        self._asking.clear()

    def _look_at(self, one: ReplicaHandle, table: Sequence[Listener]) -> Iterator[Served]:
        said = {each.port: each for each in self._said.get(one.place.position, ())}
        slots = one.place.slot.ports
        mine = [each for each in table if self._owners.has(one, each)]
        asked = {port: label for label in one.place.role.labels for port in slots[label]}
        others = sorted({each.port for each in mine} - {*asked, *said} - {*self._ephemeral})
        others = [port for port in others if listening_sockets.accepting_sockets(mine, self._host, port)]
        for port, label in asked.items():
            takes = any(
                self._uid in (None, each.uid)
                for each in listening_sockets.accepting_sockets(table, self._host, port)
            )
            begin = said.get(port, AnnouncedPort(label, port))
            answer = self._ask(port, begin.probe) if takes else self._why(one, port, table, mine, others)
            yield _make_served(label, PortSource.ASKED, begin, answer)
        for port, begin in said.items():
            if port in asked:
                continue
            takes = self._is_its_own(one, table, port)
            answer = self._ask(port, begin.probe) if takes else self._why(one, port, table, mine, others)
            yield _make_served(begin.label, PortSource.ANNOUNCED, begin, answer)
        if self._searches:
            for port in [port for port in others if self._is_its_own(one, table, port)][:MOST_FOUND]:
                yield Served(str(port), port, PortSource.FOUND)

    def _is_its_own(self, one: ReplicaHandle, table: Sequence[Listener], port: int) -> bool:
        """Tell whether a connection would reach the replica, and nobody else."""
        found = listening_sockets.accepting_sockets(table, self._host, port)
        return bool(found) and all(self._owners.has(one, each) for each in found)

    def _ask(self, port: int, probe: str) -> Answer:
        if not probe:
            return None, {}
        asking = self._asking.get(port)
        if asking is None or asking.asks_for[2] != probe:
            asking = self._asking[port] = ReadinessProbe(self._host, port, probe)
        return asking.look(time.monotonic())

    def _why(
        self,
        one: ReplicaHandle,
        port: int,
        table: Sequence[Listener],
        mine: Sequence[Listener],
        others: Sequence[int],
    ) -> Answer:
        """Return why the port is not ready."""
        if (asking := self._asking.pop(port, None)) is not None:
            asking.close()
        began = one.began_at()
        if began is None or time.monotonic() - began < PATIENCE_S:
            return Unready.STARTING, {}
        elsewhere = [each for each in mine if each.port == port]
        if elsewhere:
            return Unready.OTHER_ADDRESS, {"port": port, "address": str(elsewhere[0].address)}
        if listening_sockets.accepting_sockets(table, self._host, port):
            return Unready.TAKEN, {"port": port}
        if others:
            return Unready.OTHER_PORT, {"port": port, "other": others[0]}
        return Unready.SILENT, {"port": port}

    def _forget_questions(self) -> None:
        """Of ports that nobody announces any more."""
        said = {each.port for announced in self._said.values() for each in announced if each.probe}
        for port in [port for port in self._asking if port not in said]:
            self._asking.pop(port).close()


def _make_served(label: str, source: PortSource, begin: AnnouncedPort, answer: Answer) -> Served:
    why, params = answer
    return Served(label, begin.port, source, begin.path, begin.token, why or "", params)


class SocketOwners:
    """Replicas that hold listening sockets; looked up once for each socket."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of: dict[int, int] = {}
        self._nobodys: dict[int, int] = {}
        self._replicas: dict[int, running_replica.RunningReplica] = {}

    def learn(self, inodes: Collection[int], running: Sequence[ReplicaHandle]) -> None:
        """Look for the holders of sockets that are new."""
        self._of = {inode: owner for inode, owner in self._of.items() if inode in inodes}
        self._nobodys = {inode: tries for inode, tries in self._nobodys.items() if inode in inodes}
        new = [inode for inode in inodes if inode not in self._of and self._nobodys.get(inode, 0) < _TRIES]
        if not new:
            return
        for one in running:
            held = self._sockets(one)
            self._of |= {inode: one.place.position for inode in new if inode in held}
        for inode in new:
            if inode not in self._of:
                self._nobodys[inode] = self._nobodys.get(inode, 0) + 1

    def has(self, one: ReplicaHandle, listener: Listener) -> bool:
        """Tell whether it is the replica that listens there."""
        return self._of.get(listener.inode) == one.place.position

    def _sockets(self, one: ReplicaHandle) -> frozenset[int]:
        position, place = one.place.position, one.place
        try:
            found = self._replicas.get(position) or running_replica.find_running(
                self._path, place.role.name, place.index
            )
            self._replicas[position] = found
            return listening_sockets.sockets_of(found.pids())
        except (running_replica.ReplicaUnavailable, OSError):
            self._replicas.pop(position, None)
            return frozenset()
