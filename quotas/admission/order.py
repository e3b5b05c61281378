"""The order of admission (docs/quotas.md, "Who is next").

A request's level is its priority, plus one for each AGING_S that it has waited, less FAIR_LEVELS times its
workspace's share of the cluster, divided by the weight of its quota.  The highest level is next; of equal
ones the oldest.  A share is never more than 1, and waiting has no end, so that nothing is passed over for
ever.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from quotas.admission.values import Account, Waiting
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
    """Requests in the order of admission, which follows the shares as they change on the way.

    What an admin ranked on the cluster comes first.  What is ranked in its workspace takes the next turns
    of that workspace, so that no other workspace waits longer for it.
    """

    def __init__(
        self,
        requests: Iterable[Waiting],
        account_of: Callable[[Waiting], Account],
        shares: Shares,
        now: float,
    ) -> None:
        self._shares = shares
        self._queues: dict[_Queue, list[tuple[float, float, str, Waiting]]] = {}
        self._ranked: dict[_Line, list[Waiting]] = {}
        self._passed: dict[_Line, deque[Waiting]] = {}
        for request in requests:
            account = account_of(request)
            queue = (request.cluster_rank, account.workspace_id, account.weight)
            entry = (-level(request, now), request.since, request.holder, request)
            self._queues.setdefault(queue, []).append(entry)
            if request.workspace_rank:
                self._ranked.setdefault(queue[:2], []).append(request)
        for ranked in self._ranked.values():
            ranked.sort(key=lambda request: (request.workspace_rank, level(request, now)))
        self._heap: list[tuple[_Turn, _Queue]] = []
        for queue, entries in self._queues.items():
            entries.sort(key=lambda entry: entry[:3], reverse=True)
            self._push(queue)

    def _push(self, queue: _Queue) -> None:
        if self._queues[queue]:
            heapq.heappush(self._heap, (self._turn_of(queue), queue))

    def _turn_of(self, queue: _Queue) -> _Turn:
        rank, workspace_id, weight = queue
        below, since, holder, _request = self._queues[queue][-1]
        return -rank, below + FAIR_LEVELS * self._shares.of(workspace_id) / weight, since, holder

    def __iter__(self) -> Iterator[Waiting]:
        """The next one each time; what was added to `Shares` for the one before counts already."""
        while self._heap:
            turn, queue = heapq.heappop(self._heap)
            if turn < self._turn_of(queue):  # another queue of the workspace had a turn meanwhile
                self._push(queue)
                continue
            yield self._taker(queue[:2], self._queues[queue].pop()[3])
            self._push(queue)

    def _taker(self, line: _Line, request: Waiting) -> Waiting:
        """Return who takes the turn of a request: itself, or what is ranked before it."""
        if line not in self._ranked:
            return request
        passed = self._passed.setdefault(line, deque())
        if not request.workspace_rank:
            passed.append(request)
        return self._ranked[line].pop() if self._ranked[line] else passed.popleft()


_Queue = tuple[int, int, int]
"""Requests with the same rank on the cluster, of the same workspace, in quotas of the same weight."""

_Line = tuple[int, int]
"""Requests with the same rank on the cluster, of the same workspace."""

_Turn = tuple[int, float, float, str]
"""The lowest is next: the rank's negative, the level's negative, since when it waits, and the holder."""
