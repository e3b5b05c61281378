"""Backfill: until when a later job may use what was set aside for those ahead (docs/quotas.md)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from quotas.admission.rooms import Pool
from quotas.admission.values import Holding, Shape

DEPTH: Final = 20
"""Behind this many waiting ones nothing is filled in: the work of a pass stays bounded."""


class Shadow:
    """The earliest moment at which anybody ahead could start, by declared ends alone.

    A job that declared that it ends by then may start in between.  What is held without a declared end is not
    expected to end; if somebody ahead can't be seen to start by declared ends, nothing is filled in behind.
    """

    def __init__(self, pool: Pool, holdings: Sequence[Holding], now: float) -> None:
        self._pool = pool
        self._now = now
        declared = [(max(now, each.ends_at), each) for each in holdings if each.ends_at is not None]
        self._ends = sorted(declared, key=lambda pair: pair[0])
        self._ahead = 0
        self._shapes: dict[Shape, float] = {}
        self.moment = float("inf")

    def passes(self, declared_s: int | None) -> bool:
        """Whether a job that starts now and runs `declared_s` is over in time."""
        return declared_s is not None and self._ahead > 0 and self._now + declared_s <= self.moment

    def close(self) -> None:
        """Somebody ahead may start at any moment."""
        self._ahead += 1
        self.moment = float("-inf")

    def cast(self, shape: Shape) -> None:
        """One more waits ahead."""
        self._ahead += 1
        if self._ahead > DEPTH or self.moment <= self._now:
            self.moment = float("-inf")
            return
        if shape not in self._shapes:
            self._shapes[shape] = self._earliest(shape)
        self.moment = min(self.moment, self._shapes[shape])

    def _earliest(self, shape: Shape) -> float:
        """When `shape` fits by declared ends; minus infinity when it never does."""

        def fits(count: int) -> bool:
            pool = self._pool.copy()
            for _end, holding in self._ends[:count]:
                pool.give(holding.placement)
            return pool.place(shape) is not None

        count = bisect_left(range(len(self._ends) + 1), True, key=fits)
        if count > len(self._ends):
            return float("-inf")
        return self._ends[count - 1][0] if count else self._now
