"""Admission in console mode: who starts next, and why the others wait.

The order is priority (9 first), then age.  A request starts only as a whole (gang), within its quota,
and on what is free *beside everything that stands ahead of it*: what an earlier request waits for is
set aside, so that a later, smaller one never delays it.  A request that its own quota holds back, or
that the cluster could never hold, sets nothing aside.

Pure functions over values; `quotas.ledger` has the rows and the lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from quotas.amounts import Amounts, total
from quotas.ledger import Part

NOTHING: Final = Amounts()


class Why(StrEnum):
    """Why a request waits."""

    QUOTA = "quota"
    EXCEEDS_QUOTA = "exceeds_quota"
    EXCEEDS_CLUSTER = "exceeds_cluster"
    NO_SUCH_GPU = "no_such_gpu"
    CAPACITY = "capacity"
    TURN = "turn"
    NO_NODES = "no_nodes"


@dataclass(frozen=True, slots=True)
class Machine:
    """A node: what it has in all, and what nobody holds."""

    name: str
    has: Amounts
    free: Amounts


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A quota's limits (None: no ceiling) and what is held under it."""

    name: str
    cpu_milli: int | None
    memory_mib: int | None
    gpus: int | None
    gpus_by_type: Mapping[str, int]
    jobs: int | None
    held: Amounts = NOTHING
    holders: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """One request in the order of admission."""

    holder: str
    quota_id: int
    parts: Sequence[Part]

    @property
    def amounts(self) -> Amounts:
        """All it asks for."""
        return total(part.each.times(part.count) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a request: a placement (node, amounts), or why it waits.

    `params` fill the sentence (`wanted`, `free`, `kind`, `ahead` …).
    """

    holder: str
    placement: tuple[tuple[str, Amounts], ...] = ()
    why: Why | None = None
    params: Mapping[str, str | int | None] = field(default_factory=dict)

    @property
    def admitted(self) -> bool:
        """Whether it starts now."""
        return self.why is None


def decide(
    queue: Iterable[Waiting], ceilings: Mapping[int, Ceiling], machines: Sequence[Machine]
) -> list[Decision]:
    """One decision for each request of `queue`, which is in the order of admission."""
    pool = _Pool(machines)
    used = {key: (ceiling.held, ceiling.holders) for key, ceiling in ceilings.items()}
    decisions: list[Decision] = []
    ahead = 0
    for request in queue:
        ceiling = ceilings[request.quota_id]
        held, holders = used[request.quota_id]
        blocked = _never(request, ceiling, machines) or _over(request.amounts, ceiling, held, holders)
        if blocked is not None:
            decisions.append(Decision(request.holder, why=blocked[0], params=blocked[1]))
            continue
        placement = pool.place(request.parts)
        if placement is None:
            why, params = _short(request, pool, machines, ahead)
            decisions.append(Decision(request.holder, why=why, params=params))
            pool.set_aside(request.parts)
            ahead += 1
            continue
        pool.take(placement)
        used[request.quota_id] = (held + request.amounts, holders + 1)
        decisions.append(Decision(request.holder, placement=placement))
    return decisions


def hand_over(queue: Iterable[Waiting], ceilings: Mapping[int, Ceiling]) -> list[Decision]:
    """Engine mode: whatever its quota allows goes to the engine at once, which does the rest."""
    used = {key: (ceiling.held, ceiling.holders) for key, ceiling in ceilings.items()}
    decisions: list[Decision] = []
    for request in queue:
        ceiling = ceilings[request.quota_id]
        held, holders = used[request.quota_id]
        blocked = _over(request.amounts, ceiling, held, holders)
        if blocked is not None:
            decisions.append(Decision(request.holder, why=blocked[0], params=blocked[1]))
            continue
        used[request.quota_id] = (held + request.amounts, holders + 1)
        decisions.append(Decision(request.holder))
    return decisions


class _Pool:
    """What is free on each machine while one pass decides."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self.free = {machine.name: _Room(machine.free) for machine in machines}

    def place(self, parts: Sequence[Part]) -> tuple[tuple[str, Amounts], ...] | None:
        """First fit, largest part first, on copies; None when not all of it fits."""
        rooms = {name: room.copy() for name, room in self.free.items()}
        placed: dict[str, Amounts] = {}
        for part in sorted(parts, key=_size, reverse=True):
            left = part.count
            for name, room in rooms.items():
                fits = min(left, room.fits(part.each))
                if fits:
                    here = room.take(part.each, fits)
                    placed[name] = placed.get(name, Amounts()) + here
                    left -= fits
                if not left:
                    break
            if left:
                return None
        return tuple(placed.items())

    def take(self, placement: Iterable[tuple[str, Amounts]]) -> None:
        for name, amounts in placement:
            self.free[name].subtract(amounts)

    def set_aside(self, parts: Sequence[Part]) -> None:
        """Keep for a waiting request what it will need, as far as there is any."""
        wanted = total(part.each.times(part.count) for part in parts)
        for room in self.free.values():
            wanted = room.give(wanted)


class _Room:
    """What is free on one machine; GPUs of a named type serve requests for any type too."""

    def __init__(self, free: Amounts) -> None:
        self.cpu_milli = free.cpu_milli
        self.memory_mib = free.memory_mib
        self.gpus = dict(free.gpus)

    def copy(self) -> _Room:
        return _Room(Amounts(self.cpu_milli, self.memory_mib, self.gpus))

    def _gpus_for(self, kind: str) -> int:
        return self.gpus.get(kind, 0) if kind else sum(self.gpus.values())

    def fits(self, each: Amounts) -> int:
        """How many replicas of `each` fit."""
        counts = []
        if each.cpu_milli:
            counts.append(self.cpu_milli // each.cpu_milli)
        if each.memory_mib:
            counts.append(self.memory_mib // each.memory_mib)
        counts.extend(self._gpus_for(kind) // count for kind, count in each.gpus.items() if count)
        return max(0, min(counts)) if counts else 1_000_000

    def take(self, each: Amounts, count: int) -> Amounts:
        """Take `count` times `each`; answers what was taken, with the GPU types it came to."""
        taken = Amounts(each.cpu_milli * count, each.memory_mib * count)
        self.cpu_milli -= taken.cpu_milli
        self.memory_mib -= taken.memory_mib
        gpus: dict[str, int] = {}
        for kind, number in each.gpus.items():
            for name, got in self._draw(kind, number * count).items():
                gpus[name] = gpus.get(name, 0) + got
        return Amounts(taken.cpu_milli, taken.memory_mib, gpus)

    def _draw(self, kind: str, count: int) -> dict[str, int]:
        drawn: dict[str, int] = {}
        for name in [kind] if kind else sorted(self.gpus):
            got = min(count, max(0, self.gpus.get(name, 0)))
            if got:
                self.gpus[name] -= got
                drawn[name] = got
                count -= got
        return drawn

    def subtract(self, amounts: Amounts) -> None:
        self.cpu_milli -= amounts.cpu_milli
        self.memory_mib -= amounts.memory_mib
        for kind, count in amounts.gpus.items():
            self.gpus[kind] = self.gpus.get(kind, 0) - count

    def give(self, wanted: Amounts) -> Amounts:
        """Set aside what there is of `wanted`; answers what is still wanted elsewhere."""
        cpu = min(max(0, self.cpu_milli), wanted.cpu_milli)
        memory = min(max(0, self.memory_mib), wanted.memory_mib)
        self.cpu_milli -= cpu
        self.memory_mib -= memory
        rest = {kind: count - sum(self._draw(kind, count).values()) for kind, count in wanted.gpus.items()}
        return Amounts(wanted.cpu_milli - cpu, wanted.memory_mib - memory, rest)


def _size(part: Part) -> tuple[int, int, int]:
    return (part.each.gpu_count, part.each.memory_mib, part.each.cpu_milli)


Blocked = tuple[Why, dict[str, str | int | None]]


def _never(request: Waiting, ceiling: Ceiling, machines: Sequence[Machine]) -> Blocked | None:
    """Why the request could not start even if nobody else held anything."""
    over = _over(request.amounts, ceiling, Amounts(), 0)
    if over is not None:
        return Why.EXCEEDS_QUOTA, over[1]
    if not machines:
        return Why.NO_NODES, {}
    everything = total(machine.has for machine in machines)
    for kind in request.amounts.gpus:
        if kind and not everything.gpus.get(kind):
            return Why.NO_SUCH_GPU, {"gpu_type": kind, "types": ", ".join(sorted(everything.gpus)) or None}
    empty = _Pool([Machine(machine.name, machine.has, machine.has) for machine in machines])
    if empty.place(request.parts) is not None:
        return None
    return Why.EXCEEDS_CLUSTER, _largest_gap(request, everything)


def _over(amounts: Amounts, ceiling: Ceiling, held: Amounts, holders: int) -> Blocked | None:
    """The first limit of the quota that `amounts` would pass beside what is held."""
    checks: list[tuple[str, int, int, int | None]] = [
        ("jobs", 1, holders, ceiling.jobs),
        ("gpu", amounts.gpu_count, held.gpu_count, ceiling.gpus),
        ("cpu", amounts.cpu_milli, held.cpu_milli, ceiling.cpu_milli),
        ("memory", amounts.memory_mib, held.memory_mib, ceiling.memory_mib),
    ]
    for kind, limit in ceiling.gpus_by_type.items():
        checks.append((kind, amounts.gpus.get(kind, 0), held.gpus.get(kind, 0), limit))
    for kind, wanted, used, most in checks:
        if most is not None and wanted and used + wanted > most:
            return Why.QUOTA, {
                "quota": ceiling.name,
                "kind": kind,
                "wanted": wanted,
                "used": used,
                "limit": most,
            }
    return None


def _largest_gap(request: Waiting, everything: Amounts) -> dict[str, str | int | None]:
    """Which resource the whole cluster lacks most plainly for this request."""
    wanted = request.amounts
    for kind, count in wanted.gpus.items():
        most = everything.gpus.get(kind, 0) if kind else everything.gpu_count
        if count > most:
            return {"kind": kind or "gpu", "wanted": count, "most": most}
    if wanted.cpu_milli > everything.cpu_milli:
        return {"kind": "cpu", "wanted": wanted.cpu_milli, "most": everything.cpu_milli}
    if wanted.memory_mib > everything.memory_mib:
        return {"kind": "memory", "wanted": wanted.memory_mib, "most": everything.memory_mib}
    biggest = max(request.parts, key=_size).each
    return {"kind": "one_node", "wanted": biggest.cpu_milli, "most": None}


def _short(request: Waiting, pool: _Pool, machines: Sequence[Machine], ahead: int) -> Blocked:
    """What is missing now for a request that could start on an idle cluster."""
    free = total(machine.free for machine in machines)
    gap = _largest_gap(request, free)
    if gap["kind"] == "one_node" and ahead and _Pool(machines).place(request.parts) is not None:
        return Why.TURN, {"ahead": ahead}
    return Why.CAPACITY, {
        "kind": gap["kind"],
        "wanted": gap["wanted"],
        "free": gap["most"],
        "ahead": ahead,
        "fits_now": _fits_now(request, pool),
    }


def _fits_now(request: Waiting, pool: _Pool) -> int | None:
    """How many replicas of a one-role request would start now; None when that says nothing."""
    if len(request.parts) != 1 or request.parts[0].count == 1:
        return None
    fits = sum(room.fits(request.parts[0].each) for room in pool.free.values())
    return fits or None
