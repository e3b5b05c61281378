"""The place of a request: nodes, GPU types and the limits of the types as one decision.

First fit is tried in several orders, which finds nearly everything; only where that fails, and where the
order could matter, all ways are tried, up to a number of steps.  The steps of one pass are counted together:
those who are next are searched for first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from quotas.admission.free_capacity import UNLIMITED, Most, NodeCapacity, Placement, Pool
from quotas.admission.values import ResourceShape
from quotas.amounts import Amounts, Part

OF_ONE: Final = 20_000
"""Steps of the search for one request."""

OF_A_PASS: Final = 200_000
"""Steps of all searches of one pass."""

SEARCHED: Final = 64
"""Requests of more replicas are placed by first fit alone."""


class Placer:
    """Finds places in pools, with the steps that are left of one pass."""

    def __init__(self) -> None:
        self._steps = OF_A_PASS

    def place(self, pool: Pool, shape: ResourceShape, most: Most = UNLIMITED) -> Placement | None:
        """Take room for all of `shape` in the pool, or nothing and return None.

        `most` is how many GPUs of each type may be drawn for it, those that it names among them.
        """
        if "" not in shape.amounts.gpus:
            found = pool.first_fit(shape, shape.ordered)
            return found or self._place_typed(pool, shape)
        left = {kind: count - shape.amounts.gpus.get(kind, 0) for kind, count in most.items()}
        return self._place_untyped(pool, shape, left)

    def _place_typed(self, pool: Pool, shape: ResourceShape) -> Placement | None:
        """Place a request whose types are named; first fit is exact for replicas that are all alike."""
        if len(shape.parts) == 1:
            return None
        return pool.first_fit(shape, shape.ordered[::-1]) or self._search(pool, shape, UNLIMITED)

    def _place_untyped(self, pool: Pool, shape: ResourceShape, left: Most) -> Placement | None:
        kinds = _kinds(pool, left)
        for kind in kinds:  # one type for all of it, where that is possible
            others = {name: 0 for name in kinds if name != kind}
            found = pool.first_fit(shape, shape.ordered, {**left, **others}, kind)
            if found is not None:
                return found
        if len(kinds) < 2 and len(shape.parts) == 1:
            return None
        named_first = sorted(shape.ordered, key=lambda part: "" in part.each.gpus)
        for kind in kinds or [""]:
            found = pool.first_fit(shape, shape.ordered, left, kind) or pool.first_fit(
                shape, named_first, left, kind
            )
            if found is not None:
                return found
        return self._search(pool, shape, left) if left or len(shape.parts) > 1 else None

    def _search(self, pool: Pool, shape: ResourceShape, left: Most) -> Placement | None:
        if self._steps <= 0 or sum(part.count for part in shape.parts) > SEARCHED:
            return None
        if any(pool.fits(part, left) < part.count for part in shape.parts):
            return None
        search = _Search(pool, shape, left, min(OF_ONE, self._steps))
        found = search.find()
        self._steps -= search.done
        return found


def _kinds(pool: Pool, left: Most) -> list[str]:
    """The types of which GPUs are free and may be drawn, those with the most of them first."""
    free: dict[str, int] = {}
    for room in pool.rooms.values():
        for kind, count in room.gpus.items():
            if count > 0:
                free[kind] = free.get(kind, 0) + count
    found = {kind: min(count, left.get(kind, count)) for kind, count in free.items()}
    return sorted((kind for kind, count in found.items() if count > 0), key=lambda kind: (-found[kind], kind))


class _Search:
    """All ways to place a shape, replica by replica; of nodes that are alike only the first is tried."""

    def __init__(self, pool: Pool, shape: ResourceShape, left: Most, steps: int) -> None:
        self._pool = pool
        self._rooms = list(pool.rooms.values())
        self._replicas = [part for part in shape.ordered for _each in range(part.count)]
        self._left = dict(left)
        self._steps = steps
        self.done = 0
        self._taken: list[tuple[NodeCapacity, Amounts]] = []

    def find(self) -> Placement | None:
        """Take the first way that leads to a place for all of it; an unchanged pool and None without one."""
        if not self._place_from(0, 0):
            return None
        placed: dict[str, Amounts] = {}
        for room, here in self._taken:
            placed[room.name] = placed[room.name] + here if room.name in placed else here
        return tuple(placed.items())

    def _place_from(self, number: int, first: int) -> bool:
        """Place the replica `number` and all behind it; like ones in the order of the nodes."""
        if number == len(self._replicas):
            return True
        part = self._replicas[number]
        behind = self._replicas[number + 1] if number + 1 < len(self._replicas) else None
        seen = set()
        for position in range(first, len(self._rooms)):
            self.done += 1
            if self.done > self._steps:
                return False
            room = self._rooms[position]
            if not part.may_use(room.name) or not room.fits(part.each, self._left):
                continue
            alike = self._alike(room)
            if alike in seen:
                continue
            seen.add(alike)
            for here in self._candidates(room, part):
                self._take(room, here, part, 1)
                if self._place_from(number + 1, position if behind is part else 0):
                    return True
                self._take(room, here, part, -1)
        return False

    def _alike(self, room: NodeCapacity) -> tuple[object, ...]:
        named = tuple(
            (room.name in part.only, room.name in part.never) for part in self._replicas if part.is_choosy
        )
        return (room.cpu_milli, room.memory_mib, tuple(sorted(room.gpus.items())), named)

    def _candidates(self, room: NodeCapacity, part: Part) -> Iterator[Amounts]:
        """Yield what one replica may take on a node: its GPUs of any type are of one type, or else mixed."""
        named = {kind: count for kind, count in part.each.gpus.items() if kind}
        wanted = part.each.gpus.get("", 0)
        free = {
            kind: min(count - named.get(kind, 0), self._left.get(kind, count))
            for kind, count in sorted(room.gpus.items())
        }
        for drawn in _split(wanted, [(kind, count) for kind, count in free.items() if count > 0]):
            gpus = dict(named)
            for kind, count in drawn:
                gpus[kind] = gpus.get(kind, 0) + count
            yield Amounts(part.each.cpu_milli, part.each.memory_mib, gpus)

    def _take(self, room: NodeCapacity, here: Amounts, part: Part, sign: int) -> None:
        self.done += 1
        room.add(here, -sign)
        for kind in self._left:
            self._left[kind] -= sign * (here.gpus.get(kind, 0) - part.each.gpus.get(kind, 0))
        if sign > 0:
            self._taken.append((room, here))
        else:
            self._taken.pop()


def _split(wanted: int, free: Sequence[tuple[str, int]]) -> Iterator[tuple[tuple[str, int], ...]]:
    """Every way to draw `wanted` of what is free, those of the fewest types first."""
    ways = list(_ways_to_draw(wanted, free))
    yield from sorted(ways, key=len)


def _ways_to_draw(wanted: int, free: Sequence[tuple[str, int]]) -> Iterator[tuple[tuple[str, int], ...]]:
    if not wanted:
        yield ()
        return
    if not free:
        return
    (kind, there), *others = free
    for count in range(min(wanted, there), -1, -1):
        for rest in _ways_to_draw(wanted - count, others):
            yield ((kind, count), *rest) if count else rest
