"""Listening sockets of replicas that share the host's network.

A port counts for a replica while the very socket that a connection from the console would reach belongs to
one of its processes.  Otherwise a job could announce, as its own, what others listen on.  Only a port that it
was given is kept free for it, so whoever listens there is taken for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from jobs.node import listening_sockets
from jobs.node.listening_sockets import Listener
from jobs.node.process_trees import ProcessTable
from jobs.node.sandbox import running_replica
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.readiness_probe import Answer, Target
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.states import Params, Reason, ReasonCode, Unready

_TRIES: Final = 3
"""A process may begin just while it is looked for."""


class HostSockets:
    """The machine's listening sockets; `uid` is the job's user, None where that tells nothing."""

    def __init__(
        self, path: Path, plan: Plan, uid: int | None, list_listeners: Callable[[], Sequence[Listener]]
    ) -> None:
        house, self._list_listeners = plan.house, list_listeners
        self._host, self._uid = house.host_ip, uid
        self._owners = SocketOwners(path)
        self._range = range(house.port_range[0], house.port_range[1] + 1) if house.port_range else range(0)
        self._most_ports = house.most_ports
        self._table: Sequence[Listener] = ()
        self.too_many: Reason | None = None

    def look(self, running: Sequence[ReplicaHandle], owners: Collection[ReplicaHandle]) -> None:
        """List the machine's sockets, and find those of `owners`; of all when there are very many."""
        table = self._table = self._list_listeners()
        wide = [each for each in table if each.port in self._range and self._uid in (None, each.uid)]
        crowded = len(wide) > self._most_ports > 0
        inodes = {each.inode for each in table if self._uid in (None, each.uid)}
        self._owners.learn(inodes, running if crowded else owners)
        self.too_many = self._count(running, wide) if crowded else None

    def close(self) -> None:
        """Nothing is open."""

    def find_target(self, one: ReplicaHandle, port: int, *, is_asked: bool) -> Target | None:
        """Return the machine's address where the replica listens there, and nobody else."""
        found = listening_sockets.accepting_sockets(self._table, self._host, port)
        if is_asked:
            takes = any(self._uid in (None, each.uid) for each in found)
        else:
            takes = bool(found) and all(self._owners.has(one, each) for each in found)
        return Target(self._host) if takes else None

    def list_ports(self, one: ReplicaHandle) -> set[int]:
        """Return the ports of sockets that are the replica's."""
        ports = {each.port for each in self._list_own(one)}
        return {port for port in ports if self.find_target(one, port, is_asked=False) is not None}

    def find_obstacle(self, one: ReplicaHandle, port: int) -> Answer | None:
        """Return that the replica listens elsewhere, or another process there."""
        elsewhere = [each for each in self._list_own(one) if each.port == port]
        if elsewhere:
            return Unready.OTHER_ADDRESS, {"port": port, "address": str(elsewhere[0].address)}
        if listening_sockets.accepting_sockets(self._table, self._host, port):
            return Unready.TAKEN, {"port": port}
        return None

    def _list_own(self, one: ReplicaHandle) -> list[Listener]:
        return [each for each in self._table if self._owners.has(one, each)]

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


class SocketOwners:
    """Replicas that hold listening sockets; looked up once for each socket."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._of: dict[int, int] = {}
        self._nobodys: dict[int, int] = {}
        self._replicas: dict[int, running_replica.RunningReplica] = {}

    def learn(self, inodes: Collection[int], running: Collection[ReplicaHandle]) -> None:
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
            return listening_sockets.sockets_of(found.pids(ProcessTable()))
        except (running_replica.ReplicaUnavailable, OSError):
            self._replicas.pop(position, None)
            return frozenset()
