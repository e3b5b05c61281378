"""Choice of the CPU cores that the replicas of a job with CPU affinity are pinned to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

_MILLI: Final = 1000


class CoreAllocator:
    """Gives out `cores`, those first to which the fewest are pinned; `pinned` has the cores of live attempts.

    Cores are shared once all of them are taken: the amounts of a job count parts of a core, and jobs without
    affinity run on any.
    """

    def __init__(self, cores: Iterable[int], pinned: Iterable[int]) -> None:
        self._cores = sorted(cores)
        self._taken = Counter(pinned)

    def allocate(self, cpu_milli: int) -> tuple[int, ...]:
        """Return the cores of a replica that may use so much CPU time, as many as there are at most."""
        count = -(-cpu_milli // _MILLI)
        chosen: Sequence[int] = sorted(self._cores, key=lambda core: (self._taken[core], core))[:count]
        self._taken.update(chosen)
        return tuple(sorted(chosen))
