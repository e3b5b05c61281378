"""The order of admission (docs/quotas.md, "Who is next").

A request's level is its priority, plus one for each AGING_S that it has waited, less FAIR_LEVELS times its
workspace's share of the cluster.  The highest level is next; of equal ones the oldest.  A share is never
more than 1, and waiting has no end, so that nothing is passed over for ever.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from quotas.admission.values import Waiting
from quotas.amounts import Amounts

AGING_S: Final = 3600.0
"""Who has waited this long stands one priority higher."""

FAIR_LEVELS: Final = 2.0
"""A workspace that holds the whole cluster stands this many priorities lower than one that holds nothing."""


def level(request: Waiting, now: float) -> float:
    """A request's level before its workspace's share is taken off."""
    return request.priority + max(0.0, now - request.since) / AGING_S


class Shares:
    """How much of the cluster each workspace has: the largest of its shares of CPU, memory and GPUs."""

    def __init__(self, everything: Amounts) -> None:
        self._all = (everything.cpu_milli, everything.memory_mib, everything.gpu_count)
        self._of: dict[int, list[int]] = {}

    def add(self, workspace_id: int, cpu_milli: int, memory_mib: int, gpus: int) -> None:
        """Count what the workspace holds, or what stands ahead of its other requests."""
        has = self._of.setdefault(workspace_id, [0, 0, 0])
        has[0] += cpu_milli
        has[1] += memory_mib
        has[2] += gpus

    def of(self, workspace_id: int) -> float:
        """0 to 1."""
        has = self._of.get(workspace_id)
        if has is None:
            return 0.0
        return min(
            1.0, max((mine / all_ for mine, all_ in zip(has, self._all, strict=True) if all_), default=0.0)
        )


class AdmissionOrder:
    """Requests in the order of admission, which follows the shares as they change on the way."""

    def __init__(
        self, requests: Iterable[Waiting], workspace_of: Callable[[Waiting], int], shares: Shares, now: float
    ) -> None:
        self._shares = shares
        self._queues: dict[int, list[tuple[float, float, str, Waiting]]] = {}
        for request in requests:
            entry = (-level(request, now), request.since, request.holder, request)
            self._queues.setdefault(workspace_of(request), []).append(entry)
        self._heap: list[tuple[float, float, str, int]] = []
        for workspace_id, queue in self._queues.items():
            queue.sort(key=lambda entry: entry[:3], reverse=True)
            self._push(workspace_id)

    def _push(self, workspace_id: int) -> None:
        queue = self._queues[workspace_id]
        if queue:
            below, since, holder, _request = queue[-1]
            below += FAIR_LEVELS * self._shares.of(workspace_id)
            heapq.heappush(self._heap, (below, since, holder, workspace_id))

    def __iter__(self) -> Iterator[Waiting]:
        """The next one each time; what was added to `Shares` for the one before counts already."""
        while self._heap:
            workspace_id = heapq.heappop(self._heap)[3]
            yield self._queues[workspace_id].pop()[3]
            self._push(workspace_id)
