"""What the supervisor looks at now and then because nobody tells: which ports answer, how long logs are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from jobs.backends.local.indexes import Indexes
from jobs.backends.local.isolation import Isolation
from jobs.backends.local.listening import listening
from jobs.backends.local.plan import Plan
from jobs.backends.local.timers import Timers
from jobs.backends.local.watched import Watched

PORTS_S: Final = (0.2, 1.0, 5.0)
"""How often ports are looked at: shortly after a start, while some are silent, and once all answer."""

SHORTLY_S: Final = 20.0

LOGS_S: Final = (1.0, 5.0)
"""How often logs are looked at: while they grow, and at the most."""


class Lookout:
    """Looks when it is time to, by timers of its own."""

    def __init__(self, plan: Plan, watched: Sequence[Watched], indexes: Indexes, timers: Timers) -> None:
        self._watched, self._indexes, self._timers = watched, indexes, timers
        persons = plan.house.isolation == Isolation.PERSONS and not plan.house.engine
        self._uid = plan.uid if persons else None
        self._offering = [one for one in watched if one.place.role.labels]
        self._soon_until = time.monotonic() + SHORTLY_S
        self._logs_s = LOGS_S[0]

    def expect(self) -> None:
        """A replica has started: its ports will answer soon."""
        self._soon_until = time.monotonic() + SHORTLY_S
        self._timers.at("ports", 0.0 if self._offering else None)

    def look(self, now: float) -> bool:
        """Do what is due; whether anything changed that is worth telling."""
        if self._timers.due("logs", now):
            self._look_at_logs(now)
        return self._timers.due("ports", now) and self._look_at_ports(now)

    def last_look(self) -> None:
        """After the end: the logs as they will stay."""
        for one in self._watched:
            one.ready = frozenset()
        self._indexes.note(one.place.name for one in self._watched)

    def _look_at_logs(self, now: float) -> None:
        grew = self._indexes.note(one.place.name for one in self._watched if one.running)
        self._logs_s = LOGS_S[0] if grew else min(LOGS_S[1], self._logs_s * 1.5)
        self._timers.at("logs", now + self._logs_s)

    def _look_at_ports(self, now: float) -> bool:
        wanted = {port: one for one in self._offering if one.running for port in _ports(one)}
        heard = listening(wanted, self._uid) if wanted else frozenset()
        changed = False
        for one in self._offering:
            ready = heard & _ports(one) if one.running else frozenset()
            changed |= ready != one.ready
            one.ready = ready
        soon, silent, later = PORTS_S
        pause = later if len(heard) == len(wanted) else soon if now < self._soon_until else silent
        self._timers.at("ports", now + pause if self._offering else None)
        return changed


def _ports(one: Watched) -> frozenset[int]:
    slots = one.place.slot.ports
    return frozenset(port for label in one.place.role.labels for port in slots[label])
