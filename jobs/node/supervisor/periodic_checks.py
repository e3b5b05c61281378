"""Periodic checks of an attempt: ports, results of node checks, and excessive use."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jobs.node.sandbox.isolation import Isolation
from jobs.node.supervisor import sanity_file
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.port_monitor import PortMonitor
from jobs.node.supervisor.replica_handle import ReplicaHandle
from jobs.node.wrapper.excess import Excess
from jobs.states import Reason

PORTS_S: Final = (0.2, 1.0, 2.0)
"""How often ports are looked at: shortly after a start, while some are silent, and once all answer."""

SEARCH_S: Final = 6.0
"""How often it is looked for ports of jobs that asked for none and announced none."""

SHORTLY_S: Final = 20.0

SANITY_S: Final = 0.5
"""How often the results of the sanity check are read, until it has ended."""


class PeriodicChecks:
    """Looks when it is time to, by timers of its own."""

    def __init__(self, path: Path, plan: Plan, handles: Sequence[ReplicaHandle]) -> None:
        self._handles, self._timers = handles, Timers()
        self._plan, self._work = plan, path / "work"
        self._serving = PortMonitor(path, plan, handles)
        self._excess = Excess(path, plan, handles)
        self._offering = any(one.place.role.labels for one in handles)
        self._soon_until = time.monotonic() + SHORTLY_S
        self._searched = 0.0
        for name in ("ports", "excess", *(("sanity",) if plan.checks_nodes else ())):
            self._timers.at(name, 0.0)

    def due_at(self) -> float:
        """Return when something is to be looked at next, in seconds since the boot."""
        return self._timers.first()

    def expect(self) -> None:
        """A replica has started: its ports will answer soon."""
        self._soon_until = time.monotonic() + SHORTLY_S
        self._timers.at("ports", 0.0)

    def look(self, now: float) -> bool:
        """Do what is due; whether anything changed that is worth telling."""
        changed = self._timers.is_due("sanity", now) and self._look_at_sanity(now)
        return (self._timers.is_due("ports", now) and self._look_at_ports(now)) or changed

    def excess(self, now: float) -> Reason | None:
        """Return why the attempt is to end, if it takes too much."""
        if not self._timers.is_due("excess", now):
            return self._serving.too_many
        reason, again = self._excess.look(now)
        self._timers.at("excess", again)
        return reason or self._serving.too_many

    def last_look(self) -> None:
        """After the end: ports are closed, and the results of checks are as they will stay."""
        for one in self._handles:
            one.served = ()
        self._serving.close()
        if self._plan.checks_nodes:
            self._look_at_sanity(0.0)

    def close(self) -> None:
        """Ask nothing more, and close what is open."""
        self._serving.close()

    def _look_at_sanity(self, now: float) -> bool:
        """Read the results of checks that had not ended; return whether one has changed."""
        changed = False
        house = self._plan.house
        uid = self._plan.uid if house.isolation == Isolation.PERSONS and not house.engine else None
        for one in self._handles:
            if one.started is None or (one.sanity and one.sanity["status"] != sanity_file.RUNNING):
                continue
            found = sanity_file.read(self._work / one.place.name, uid) or dict(sanity_file.NOT_BEGUN)
            changed |= found != one.sanity
            one.sanity = found
        is_over = all(one.sanity and one.sanity["status"] != sanity_file.RUNNING for one in self._handles)
        self._timers.at("sanity", None if is_over else now + SANITY_S)
        return changed

    def _look_at_ports(self, now: float) -> bool:
        """Read announcements each time, and list sockets where there is something to look for."""
        soon, silent, later = PORTS_S
        changed, expects = False, self._serving.expects()
        if expects or now - self._searched >= SEARCH_S:
            self._searched = now
            changed = self._serving.look()
        missing = any(each.why for one in self._handles for each in one.served)
        hurries = missing and self._offering and now < self._soon_until
        self._timers.at("ports", now + (soon if hurries else silent if missing else later))
        return changed


class Timers:
    """Named moments, in seconds since the boot."""

    def __init__(self) -> None:
        self._moments: dict[str, float] = {}

    def at(self, name: str, moment: float | None) -> None:
        """Set the moment of that name; None forgets it."""
        self._moments[name] = math.inf if moment is None else moment

    def is_due(self, name: str, now: float) -> bool:
        """Tell whether the moment has come."""
        return self._moments.get(name, math.inf) <= now

    def first(self) -> float:
        """Return the first moment; infinity when there is none."""
        return min(self._moments.values(), default=math.inf)

    def pause(self) -> float:
        """Seconds until the first of them; at most an hour, and never less than none."""
        return max(0.0, min(3600.0, self.first() - time.monotonic()))
