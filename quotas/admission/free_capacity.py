"""Free capacity of each node during one admission pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from quotas.admission.values import Machine, ResourceShape
from quotas.amounts import Amounts, Part

Placement = tuple[tuple[str, Amounts], ...]
Most = Mapping[str, int]
"""How many GPUs of a type may be drawn; a type that is absent has no limit."""

MANY = 1_000_000
UNLIMITED: Final[Most] = MappingProxyType({})


class NodeCapacity:
    """Free capacity of one node; GPUs of a named type serve requests for any type too.

    Less than nothing may be free, where a machine shrank below what is held on it.
    """

    __slots__ = ("cpu_milli", "gpus", "has", "memory_mib", "name")

    def __init__(self, name: str, has: Amounts) -> None:
        self.name = name
        self.has = has
        self.cpu_milli = has.cpu_milli
        self.memory_mib = has.memory_mib
        self.gpus = dict(has.gpus)

    def copy(self) -> NodeCapacity:
        """The same, to be changed by itself."""
        made = NodeCapacity(self.name, self.has)
        made.cpu_milli, made.memory_mib, made.gpus = self.cpu_milli, self.memory_mib, dict(self.gpus)
        return made

    def fits(self, each: Amounts, most: Most = UNLIMITED) -> int:
        """How many replicas of `each` fit; `most` limits what GPUs of any type come to."""
        count = MANY
        if each.cpu_milli:
            count = min(count, self.cpu_milli // each.cpu_milli)
        if each.memory_mib:
            count = min(count, self.memory_mib // each.memory_mib)
        for kind, wanted in each.gpus.items():
            if wanted:
                count = min(count, self.gpus_of(kind, most) // wanted)
        return max(0, count)

    def gpus_of(self, kind: str, most: Most = UNLIMITED) -> int:
        """Free GPUs of a type; of all types, each up to `most`, for ""."""
        if kind:
            return self.gpus.get(kind, 0)
        if not most:
            return sum(count for count in self.gpus.values() if count > 0)
        return sum(max(0, min(count, most.get(name, count))) for name, count in self.gpus.items())

    def take(self, each: Amounts, count: int, most: Most = UNLIMITED, first: str = "") -> Amounts:
        """Take `count` times `each`, which fits; answers what was taken, with the GPU types it came to.

        Named types are drawn before "any", so that the two never fight over the same GPU; of "any" the type
        `first` is drawn first.
        """
        self.cpu_milli -= each.cpu_milli * count
        self.memory_mib -= each.memory_mib * count
        gpus: dict[str, int] = {}
        for kind, number in sorted(each.gpus.items(), reverse=True):
            for name, got in self._draw(kind, number * count, most, first).items():
                gpus[name] = gpus.get(name, 0) + got
        return Amounts(each.cpu_milli * count, each.memory_mib * count, gpus)

    def _draw(self, kind: str, count: int, most: Most = UNLIMITED, first: str = "") -> dict[str, int]:
        drawn: dict[str, int] = {}
        for name in (kind,) if kind else sorted(self.gpus, key=lambda name: (name != first, name)):
            there = max(0, self.gpus.get(name, 0))
            got = min(count, there if kind else max(0, min(there, most.get(name, there))))
            if got:
                self.gpus[name] -= got
                drawn[name] = got
                count -= got
        return drawn

    def add(self, amounts: Amounts, sign: int = 1) -> None:
        """Give back what was taken, or with `sign` -1 take exactly this."""
        self.cpu_milli += sign * amounts.cpu_milli
        self.memory_mib += sign * amounts.memory_mib
        for kind, count in amounts.gpus.items():
            self.gpus[kind] = self.gpus.get(kind, 0) + sign * count

    def withhold(self, each: Amounts, count: int, most: Most = UNLIMITED) -> bool:
        """Set aside what there is of `count` times `each`; whether there was anything."""
        cpu = min(max(0, self.cpu_milli), each.cpu_milli * count)
        memory = min(max(0, self.memory_mib), each.memory_mib * count)
        self.cpu_milli -= cpu
        self.memory_mib -= memory
        drawn = [self._draw(kind, wanted * count, most) for kind, wanted in each.gpus.items()]
        return bool(cpu or memory or any(drawn))

    def at_most(self, other: NodeCapacity) -> None:
        """Have no more free than `other` has."""
        self.cpu_milli = min(self.cpu_milli, other.cpu_milli)
        self.memory_mib = min(self.memory_mib, other.memory_mib)
        for kind, count in other.gpus.items():
            self.gpus[kind] = min(self.gpus.get(kind, 0), count)

    def amounts(self) -> Amounts:
        """Return the free capacity."""
        return Amounts(
            max(0, self.cpu_milli),
            max(0, self.memory_mib),
            {kind: count for kind, count in self.gpus.items() if count > 0},
        )


class Pool:
    """All machines on which something may start."""

    def __init__(self, rooms: Iterable[NodeCapacity]) -> None:
        self.rooms: dict[str, NodeCapacity] = {room.name: room for room in rooms}

    @classmethod
    def of(cls, machines: Iterable[Machine]) -> Pool:
        """The usable machines, empty."""
        return cls(NodeCapacity(machine.name, machine.has) for machine in machines if machine.usable)

    @classmethod
    def of_all(cls, machines: Iterable[Machine]) -> Pool:
        """All machines, empty, those too on which nothing starts now."""
        return cls(NodeCapacity(machine.name, machine.has) for machine in machines)

    def copy(self) -> Pool:
        """The same, to be changed by itself."""
        return Pool(room.copy() for room in self.rooms.values())

    def first_fit(
        self, shape: ResourceShape, parts: Iterable[Part], most: Most = UNLIMITED, first: str = ""
    ) -> Placement | None:
        """Take room for the parts of `shape` in their order, each on the first nodes that have some.

        GPUs of any type are drawn from `first` before the others, and of no type more than `most`.  None,
        and an unchanged pool, where that leads to no place for all of it.
        """
        placed: dict[str, Amounts] = {}
        left_of = dict(most)
        for part in parts:
            left = part.count
            for room in self._for(part, shape):
                fits = min(left, room.fits(part.each, left_of))
                if fits:
                    here = room.take(part.each, fits, left_of, first)
                    placed[room.name] = placed[room.name] + here if room.name in placed else here
                    if left_of and "" in part.each.gpus:
                        for kind, count in here.gpus.items():
                            if kind in left_of:
                                left_of[kind] -= count
                    left -= fits
                    if not left:
                        break
            if left:
                self.give(placed.items())
                return None
        return tuple(placed.items())

    def _for(self, part: Part, shape: ResourceShape) -> Iterable[NodeCapacity]:
        """The machines that a part may be on; first those to which nothing else of the shape is bound."""
        if not shape.is_choosy:
            return self.rooms.values()
        there = [room for room in self.rooms.values() if part.may_use(room.name)]
        return sorted(there, key=lambda room: shape.bound_to(room.name))

    def give(self, placement: Iterable[tuple[str, Amounts]], sign: int = 1) -> None:
        """Give back what a placement took, or with `sign` -1 take it; what is nowhere is passed over."""
        for name, amounts in placement:
            room = self.rooms.get(name)
            if room is not None:
                room.add(amounts, sign)

    def set_aside(self, shape: ResourceShape, most: Most = UNLIMITED) -> bool:
        """Keep for a waiting request all that it could use, wherever that is; whether there was anything.

        On each machine as much as it could hold of the request, so that whichever machine gets free first,
        nobody behind it has taken what it needs there.
        """
        anything = False
        for room in self.rooms.values():
            for part in shape.ordered:
                count = min(part.count, _holds(room.has, part.each))
                if count and part.may_use(room.name):
                    anything |= room.withhold(part.each, count, most)
        return anything

    def covers(self, placement: Iterable[tuple[str, Amounts]]) -> bool:
        """Whether all of a placement is free."""
        return all(name in self.rooms and self.rooms[name].fits(here) for name, here in placement)

    def at_most(self, other: Pool, names: Iterable[str]) -> None:
        """Have no more free on the machines `names` than `other` has."""
        for name in names:
            self.rooms[name].at_most(other.rooms[name])

    def total(self) -> Amounts:
        """Return the free capacity of all nodes together."""
        cpu = memory = 0
        gpus: dict[str, int] = {}
        for room in self.rooms.values():
            cpu += max(0, room.cpu_milli)
            memory += max(0, room.memory_mib)
            for kind, count in room.gpus.items():
                gpus[kind] = gpus.get(kind, 0) + max(0, count)
        return Amounts(cpu, memory, gpus)

    def fits(self, part: Part, most: Most = UNLIMITED) -> int:
        """How many such replicas there is room for."""
        return sum(room.fits(part.each, most) for room in self.rooms.values() if part.may_use(room.name))


def _holds(has: Amounts, each: Amounts) -> int:
    """How many replicas of `each` a machine could hold if it were empty."""
    count = MANY
    if each.cpu_milli:
        count = min(count, has.cpu_milli // each.cpu_milli)
    if each.memory_mib:
        count = min(count, has.memory_mib // each.memory_mib)
    for kind, wanted in each.gpus.items():
        if wanted:
            there = has.gpus.get(kind, 0) if kind else has.gpu_count
            count = min(count, there // wanted)
    return max(0, count)


def largest_gap(wanted: Amounts, most: Amounts) -> tuple[str, int, int] | None:
    """Return (kind, wanted, most) of the resource that exceeds `most` by the largest factor, or None."""
    for kind, count in wanted.gpus.items():
        there = most.gpus.get(kind, 0) if kind else most.gpu_count
        if count > there:
            return kind or "gpu", count, there
    if wanted.cpu_milli > most.cpu_milli:
        return "cpu", wanted.cpu_milli, most.cpu_milli
    if wanted.memory_mib > most.memory_mib:
        return "memory", wanted.memory_mib, most.memory_mib
    return None
