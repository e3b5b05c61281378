"""Ports that replicas serve: those that the job file requests, announced ones, and those found.

Where replicas share the host's network, a port that was asked for is kept free for the replica, so whoever
listens there is taken for it.  Of any other port nothing is believed there (`host_sockets`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from jobs.node import listening_sockets
from jobs.node.listening_sockets import Listener
from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor.announced_ports import AnnouncedPort, Announcements
from jobs.node.supervisor.host_sockets import HostSockets
from jobs.node.supervisor.own_sockets import OwnSockets
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.readiness_probe import Answer, ReadinessProbes, Target
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.states import Params, PortSource, Reason, Unready

PATIENCE_S: Final = 10.0
"""How long after its start a replica is left alone before what keeps its ports silent is looked for."""

MOST_SEARCHED: Final = 16
"""In an attempt with more replicas nothing is found that was not announced."""

MOST_FOUND: Final = 8


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


class Sockets(Protocol):
    """The sockets that replicas listen on."""

    @property
    def too_many(self) -> Reason | None:
        """Return why the attempt is to end, if a replica listens on too many ports."""

    def look(self, running: Sequence[ReplicaHandle], owners: Collection[ReplicaHandle]) -> None:
        """Read them again for these replicas; for `owners` also those that were not asked for."""

    def close(self) -> None:
        """Let go of what was opened."""

    def find_target(self, one: ReplicaHandle, port: int, *, is_asked: bool) -> Target | None:
        """Return where to connect to for a port of a replica; None where nothing of it is reached."""

    def list_ports(self, one: ReplicaHandle) -> set[int]:
        """Return the ports on which the replica itself listens, where a connection reaches it."""

    def find_obstacle(self, one: ReplicaHandle, port: int) -> Answer | None:
        """Return what else keeps a connection to a port from reaching the replica, if anything is seen."""


class PortMonitor:
    """Looks at the ports of an attempt's replicas, in the host's network among those that `list_listeners`
    returns.
    """

    def __init__(
        self,
        path: Path,
        plan: Plan,
        handles: Sequence[ReplicaHandle],
        list_listeners: Callable[[], Sequence[Listener]] = listening_sockets.list_listeners,
    ) -> None:
        house = plan.house
        persons = house.isolation == Isolation.PERSONS and not house.engine
        uid = plan.uid if persons else None
        self._handles, self._searches = handles, len(handles) <= MOST_SEARCHED
        self._sockets: Sockets = (
            OwnSockets(plan) if plan.network else HostSockets(path, plan, uid, list_listeners)
        )
        self._ephemeral = listening_sockets.ephemeral()
        self._announcements = Announcements(path, {p.position: p.name for p in plan.replicas()}, uid)
        self._probes = ReadinessProbes()

    @property
    def too_many(self) -> Reason | None:
        """Return why the attempt is to end, if a replica listens on too many ports."""
        return self._sockets.too_many

    def expects(self) -> bool:
        """Read what the jobs announce; whether anything is to be looked for."""
        running = [one for one in self._handles if one.running]
        announced = self._announcements.read(one.place.position for one in running)
        return announced or any(one.place.role.labels for one in running)

    def look(self) -> bool:
        """Tell whether anything is served otherwise than at the last look."""
        running = [one for one in self._handles if one.running]
        owners = running if self._searches else [one for one in running if self._list_announced(one)]
        self._sockets.look(running, owners)
        changed = False
        for one in self._handles:
            served = tuple(self._look_at(one)) if one.running else ()
            changed |= served != one.served
            one.served = served
        announced = ((one.place.position, self._list_announced(one)) for one in running)
        self._probes.drop_others({(at, port) for at, said in announced for port in said if said[port].probe})
        return changed

    def close(self) -> None:
        """Ask nothing more."""
        self._probes.drop_others(())
        self._sockets.close()

    def _list_announced(self, one: ReplicaHandle) -> Mapping[int, AnnouncedPort]:
        return self._announcements.of(one.place.position)

    def _look_at(self, one: ReplicaHandle) -> Iterator[Served]:
        announced, slots = self._list_announced(one), one.place.slot.ports
        asked = {port: label for label in one.place.role.labels for port in slots[label]}
        found = self._sockets.list_ports(one) - {*asked, *announced}
        others = sorted(port for port in found if port not in self._ephemeral)
        for port, label in asked.items():
            begin = announced.get(port, AnnouncedPort(label, port))
            yield _make_served(label, PortSource.ASKED, begin, self._judge(one, begin, others, is_asked=True))
        for port, begin in announced.items():
            if port not in asked:
                answer = self._judge(one, begin, others, is_asked=False)
                yield _make_served(begin.label, PortSource.ANNOUNCED, begin, answer)
        if self._searches:
            for port in others[:MOST_FOUND]:
                yield Served(str(port), port, PortSource.FOUND)

    def _judge(
        self, one: ReplicaHandle, begin: AnnouncedPort, others: Sequence[int], *, is_asked: bool
    ) -> Answer:
        """Return nothing for a port that is ready, or why it is not."""
        position, port = one.place.position, begin.port
        target = self._sockets.find_target(one, port, is_asked=is_asked)
        if target is not None:
            return self._probes.look(position, port, target, begin.probe) if begin.probe else (None, {})
        self._probes.drop((position, port))
        began = one.began_at()
        if began is None or time.monotonic() - began < PATIENCE_S:
            return Unready.STARTING, {}
        if (obstacle := self._sockets.find_obstacle(one, port)) is not None:
            return obstacle
        if others:
            return Unready.OTHER_PORT, {"port": port, "other": others[0]}
        return Unready.SILENT, {"port": port}


def _make_served(label: str, source: PortSource, begin: AnnouncedPort, answer: Answer) -> Served:
    why, params = answer
    return Served(label, begin.port, source, begin.path, begin.token, why or "", params)
