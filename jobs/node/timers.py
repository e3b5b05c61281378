"""When there is something to do next."""

from __future__ import annotations

import math
import time


class Timers:
    """Named moments, in seconds since the boot."""

    def __init__(self) -> None:
        self._moments: dict[str, float] = {}

    def at(self, name: str, moment: float | None) -> None:
        """Set the moment of that name; None forgets it."""
        self._moments[name] = math.inf if moment is None else moment

    def due(self, name: str, now: float) -> bool:
        """Whether the moment has come; one that was never set has."""
        return self._moments.get(name, 0.0) <= now

    def pause(self) -> float:
        """Seconds until the first of them; at most an hour, and never less than none."""
        return max(0.0, min(3600.0, min(self._moments.values(), default=0.0) - time.monotonic()))
