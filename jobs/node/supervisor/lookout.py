"""What the supervisor looks at now and then because nobody tells: which ports answer, how long logs are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jobs.node.supervisor.indexes import Indexes
from jobs.node.supervisor.plan import Plan
from jobs.node.supervisor.serving import Serving
from jobs.node.supervisor.watched import Watched
from jobs.node.timers import Timers
from jobs.node.wrapper.excess import Excess
from jobs.states import Reason

PORTS_S: Final = (0.2, 1.0, 2.0)
"""How often ports are looked at: shortly after a start, while some are silent, and once all answer."""

SEARCH_S: Final = 6.0
"""How often it is looked for ports of jobs that asked for none and announced none."""

SHORTLY_S: Final = 20.0

LOGS_S: Final = (1.0, 5.0)
"""How often logs are looked at: while they grow, and at the most."""


class Lookout:
    """Looks when it is time to, by timers of its own."""

    def __init__(
        self, path: Path, plan: Plan, watched: Sequence[Watched], indexes: Indexes, timers: Timers
    ) -> None:
        self._watched, self._indexes, self._timers = watched, indexes, timers
        self._serving = Serving(path, plan, watched)
        self._excess = Excess(path, plan, watched)
        self._offering = any(one.place.role.labels for one in watched)
        self._soon_until = time.monotonic() + SHORTLY_S
        self._searched = 0.0
        self._logs_s = LOGS_S[0]

    def expect(self) -> None:
        """A replica has started: its ports will answer soon."""
        self._soon_until = time.monotonic() + SHORTLY_S
        self._timers.at("ports", 0.0)

    def look(self, now: float) -> bool:
        """Do what is due; whether anything changed that is worth telling."""
        if self._timers.due("logs", now):
            self._look_at_logs(now)
        return self._timers.due("ports", now) and self._look_at_ports(now)

    def excess(self, now: float) -> Reason | None:
        """Return why the attempt is to end, if it takes too much."""
        if not self._timers.due("excess", now):
            return self._serving.too_many
        reason, again = self._excess.look(now)
        self._timers.at("excess", again)
        return reason or self._serving.too_many

    def last_look(self) -> None:
        """After the end: the logs as they will stay."""
        for one in self._watched:
            one.served = ()
        self._serving.close()
        self._indexes.note(one.place.name for one in self._watched)

    def _look_at_logs(self, now: float) -> None:
        grew = self._indexes.note(one.place.name for one in self._watched if one.running)
        self._logs_s = LOGS_S[0] if grew else min(LOGS_S[1], self._logs_s * 1.5)
        self._timers.at("logs", now + self._logs_s)

    def _look_at_ports(self, now: float) -> bool:
        """What is announced is read each time; the kernel is asked where there is something to look for."""
        soon, silent, later = PORTS_S
        changed, expects = False, self._serving.expects()
        if expects or now - self._searched >= SEARCH_S:
            self._searched = now
            changed = self._serving.look()
        missing = any(each.why for one in self._watched for each in one.served)
        hurries = missing and self._offering and now < self._soon_until
        self._timers.at("ports", now + (soon if hurries else silent if missing else later))
        return changed
