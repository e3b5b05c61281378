"""Periodic checks of an attempt: ports, lengths of logs, and excessive use."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from jobs.node.files import Folder
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

LOGS_S: Final = (1.0, 5.0)
"""How often logs are looked at: while they grow, and at the most."""


class PeriodicChecks:
    """Looks when it is time to, by timers of its own."""

    def __init__(self, path: Path, plan: Plan, folder: Folder, handles: Sequence[ReplicaHandle]) -> None:
        self._handles, self._timers = handles, Timers()
        self._logs = folder.sub("logs")
        self._indexes = Indexes(self._logs)
        self._serving = PortMonitor(path, plan, handles)
        self._excess = Excess(path, plan, handles)
        self._offering = any(one.place.role.labels for one in handles)
        self._soon_until = time.monotonic() + SHORTLY_S
        self._searched = 0.0
        self._logs_s = LOGS_S[0]
        for name in ("logs", "ports", "excess"):
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
        if self._timers.is_due("logs", now):
            self._look_at_logs(now)
        return self._timers.is_due("ports", now) and self._look_at_ports(now)

    def excess(self, now: float) -> Reason | None:
        """Return why the attempt is to end, if it takes too much."""
        if not self._timers.is_due("excess", now):
            return self._serving.too_many
        reason, again = self._excess.look(now)
        self._timers.at("excess", again)
        return reason or self._serving.too_many

    def last_look(self) -> None:
        """After the end: the logs as they will stay."""
        for one in self._handles:
            one.served = ()
        self._serving.close()
        self._indexes.note(one.place.name for one in self._handles)

    def close(self) -> None:
        """Ask nothing more, and close what is open."""
        self._serving.close()
        self._logs.close()

    def _look_at_logs(self, now: float) -> None:
        grew = self._indexes.note(one.place.name for one in self._handles if one.running)
        self._logs_s = LOGS_S[0] if grew else min(LOGS_S[1], self._logs_s * 1.5)
        self._timers.at("logs", now + self._logs_s)

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


class Indexes:
    """The indexes of the logs in one folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}

    def note(self, names: Iterable[str]) -> bool:
        """Write down what grew of the named logs; whether anything did."""
        grown = [(name, size) for name in names if (size := self._size(name)) > self._sizes.get(name, 0)]
        for name, size in grown:
            self._append(name, f"{time.time():.3f} {size}\n")
            self._sizes[name] = size
        return bool(grown)

    def _size(self, name: str) -> int:
        try:
            return os.stat(f"{name}.output", dir_fd=self._folder.fd, follow_symlinks=False).st_size
        except FileNotFoundError:
            return 0

    def _append(self, name: str, line: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        fd = os.open(f"{name}.index", flags, 0o600, dir_fd=self._folder.fd)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)
