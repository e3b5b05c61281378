"""Backfill: until when a later job may use what was set aside for those ahead (docs/quotas.md)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from quotas.admission.free_capacity import Pool
from quotas.admission.placement import Placer
from quotas.admission.quota_usage import Level, QuotaUsage
from quotas.admission.values import HeldResources, ResourceShape, Waiting

DEPTH: Final = 20
"""Behind this many waiting ones nothing is filled in: the work of a pass stays bounded."""

NEVER: Final = float("-inf")
ANY_TIME: Final = float("inf")

Ends = Sequence[tuple[float, HeldResources]]
"""When each holding is over at the latest, the first first; those of which nobody knows are not there."""


class Shadow:
    """The earliest moment at which anybody ahead could start, by declared ends alone.

    A job that declared that it ends by then may start in between.  What is held without a declared end is not
    expected to end; if somebody ahead can't be seen to start by declared ends, nothing is filled in behind.
    """

    def __init__(self, pool: Pool, ends: Ends, now: float, placer: Placer) -> None:
        self._pool = pool
        self._now = now
        self._ends = ends
        self._placer = placer
        self._ahead = 0
        self._shapes: dict[ResourceShape, float] = {}
        self.moment = ANY_TIME

    def passes(self, declared_s: int | None) -> bool:
        """Whether a job that starts now and runs `declared_s` is over in time."""
        return declared_s is not None and self._ahead > 0 and self._now + declared_s <= self.moment

    def close(self) -> None:
        """Mark that a request ahead may start at any moment."""
        self._ahead += 1
        self.moment = NEVER

    def cast(self, shape: ResourceShape) -> None:
        """One more waits ahead."""
        self._ahead += 1
        if self._ahead > DEPTH or self.moment <= self._now:
            self.moment = NEVER
            return
        if shape not in self._shapes:
            self._shapes[shape] = self._earliest(shape)
        self.moment = min(self.moment, self._shapes[shape])

    def _earliest(self, shape: ResourceShape) -> float:
        """When `shape` fits by declared ends; minus infinity when it never does."""

        def fits(count: int) -> bool:
            pool = self._pool.copy()
            for _end, holding in self._ends[:count]:
                pool.give(holding.placement)
            return self._placer.place(pool, shape) is not None

        count = bisect_left(range(len(self._ends) + 1), True, key=fits)
        if count > len(self._ends):
            return NEVER
        return self._ends[count - 1][0] if count else self._now


class Turns:
    """The same for limits: until when what is set aside of each one may be used by a later job."""

    def __init__(self, usage: QuotaUsage, ends: Ends, now: float) -> None:
        self._usage = usage
        self._now = now
        self._ends: dict[Level, list[tuple[float, HeldResources]]] = {}
        for end, holding in ends:
            if not holding.borrowed:
                for level in usage.levels_of(holding.quota_id, holding.owner_id):
                    self._ends.setdefault(level, []).append((end, holding))
        self._moments: dict[Level, float] = {}
        self._ahead: dict[Level, int] = {}
        self._known: dict[tuple[Level, ResourceShape], float] = {}
        self._exhausted: dict[tuple[ResourceShape, int, int], list[Level]] = {}

    def passes(self, request: Waiting) -> bool:
        """Whether the request is over before anybody ahead needs what is set aside of its limits."""
        if request.declared_s is None:
            return False
        end = self._now + request.declared_s
        levels = self._usage.levels_of(request.quota_id, request.owner_id)
        return all(end <= self._moments.get(level, ANY_TIME) for level in levels)

    def cast(self, request: Waiting, moment: float | None = None) -> None:
        """One more waits, for what it has set aside: until `moment`, or until its limits let it through."""
        alike = (request.shape, request.quota_id, request.owner_id)
        levels = self._exhausted.get(alike)
        if levels is None:
            levels, anything = self._usage.set_aside(request)
            if not anything:
                self._exhausted[alike] = levels
        if not levels:
            return
        if moment is None:
            moment = self._earliest(levels[-1], request)
        for level in levels:
            ahead = self._ahead[level] = self._ahead.get(level, 0) + 1
            moment_here = moment if ahead <= DEPTH else NEVER
            self._moments[level] = min(self._moments.get(level, ANY_TIME), moment_here)

    def _earliest(self, level: Level, request: Waiting) -> float:
        """When the request passes a limit by declared ends; minus infinity when it never does."""
        if self._moments.get(level, ANY_TIME) <= self._now:
            return NEVER
        key = (level, request.shape)
        if key not in self._known:
            ends = self._ends.get(level, [])

            def passes(count: int) -> bool:
                freed = [holding.amounts for _end, holding in ends[:count]]
                return self._usage.passes_without(level, request, freed)

            count = bisect_left(range(len(ends) + 1), True, key=passes)
            if count > len(ends):
                self._known[key] = NEVER
            else:
                self._known[key] = ends[count - 1][0] if count else self._now
        return self._known[key]
