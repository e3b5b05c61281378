"""Inputs and results of admission.  Times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final, TypeAlias

from quotas.amounts import Amounts, Part, total

NOTHING: Final = Amounts()

UNBOUND: Final = 1_000_000
"""More nodes than anybody names."""

Params: TypeAlias = dict[str, str | int | None]


class Why(StrEnum):
    """Why a request waits."""

    QUOTA = "quota"
    QUOTA_TURN = "quota_turn"
    PERSON = "person"
    HOURS = "hours"
    EXCEEDS_QUOTA = "exceeds_quota"
    EXCEEDS_CLUSTER = "exceeds_cluster"
    NO_SUCH_GPU = "no_such_gpu"
    NO_SUCH_NODE = "no_such_node"
    CAPACITY = "capacity"
    TURN = "turn"
    COMING = "coming"
    IDLE = "idle"
    OUTBID = "outbid"
    ENGINE_FULL = "engine_full"
    NO_NODES = "no_nodes"
    HELD = "held"
    OTHERS = "others"
    NOT_YET = "not_yet"
    FROZEN = "frozen"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True)
class Machine:
    """A node on which jobs may start: what it has in all.  `usable` is off for cordoned, draining and lost
    ones: what is held there counts, and nothing starts there.  `others` is used by what was not started from
    here: it is never free, and nobody is asked to give it back.  `draining` is why an admin empties it, None
    where nobody does.
    """

    name: str
    has: Amounts
    usable: bool = True
    others: Amounts = NOTHING
    draining: str | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits; None is none."""

    cpu_milli: int | None = None
    memory_mib: int | None = None
    gpus: int | None = None
    gpus_by_type: Mapping[str, int] = field(default_factory=dict)
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """A quota: its limits, those of one person in it, and where it hangs in the tree.

    `public` shares one limit a person among all public quotas of the cluster; what is held under a
    `preemptible` one may be taken back, and costs.  `hours_left` is False once its GPU-hours are gone.
    The share of its workspace counts divided by `weight` in the order of admission.
    """

    id: int
    name: str
    workspace_id: int
    limits: Limits = Limits()
    person: Limits = Limits()
    parent_id: int | None = None
    public: bool = False
    preemptible: bool = False
    may_borrow: bool = True
    hours_left: bool = True
    most_pending: int | None = None
    weight: int = 1
    people: Mapping[int, Limits] = field(default_factory=dict)

    def limits_of(self, owner_id: int) -> Limits:
        """Return the limits of one person in it; `people` has those of whom other ones hold for."""
        return self.people.get(owner_id, self.person)


@dataclass(frozen=True, slots=True)
class Bid:
    """The most that one replica may cost: `percent` of the market price, or `micro` an hour.

    With neither it is the market price.
    """

    percent: int | None = None
    micro: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """An hour of a GPU (or of a core, where there is none), in millionths: the market's, and now."""

    market_micro: int
    now_micro: int


@dataclass(frozen=True, eq=False)
class ResourceShape:
    """The resources that a request asks for; whoever makes many shares equal ones."""

    parts: tuple[Part, ...]

    @cached_property
    def amounts(self) -> Amounts:
        """All of it."""
        return total(part.each.times(part.count) for part in self.parts)

    @cached_property
    def gpu_count(self) -> int:
        """GPUs of all types."""
        return self.amounts.gpu_count

    @cached_property
    def ordered(self) -> tuple[Part, ...]:
        """The parts as they are placed: those with the fewest nodes to be on first, then the largest."""
        return tuple(sorted(self.parts, key=_size, reverse=True))

    @cached_property
    def is_choosy(self) -> bool:
        """Whether not every node will do."""
        return any(part.is_choosy for part in self.parts)

    @cached_property
    def spare(self) -> int:
        """How many of its replicas are not needed to start."""
        return sum(part.spare for part in self.parts)

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of replicas of each part."""
        return tuple(part.count for part in self.parts)

    def without(self, fewer: int) -> ResourceShape:
        """The shape with so many replicas less, at most `spare`: those of the last parts first."""
        if fewer not in self._smaller:
            parts, left = [], fewer
            for part in reversed(self.parts):
                taken = min(left, part.spare)
                parts.append(replace(part, count=part.count - taken))
                left -= taken
            self._smaller[fewer] = ResourceShape(tuple(reversed(parts)))
        return self._smaller[fewer] if fewer else self

    @cached_property
    def _smaller(self) -> dict[int, ResourceShape]:
        return {}

    @cached_property
    def anywhere(self) -> ResourceShape:
        """The same, if every node would do."""
        return ResourceShape(tuple(Part(part.count, part.each) for part in self.parts))

    def bound_to(self, node: str) -> int:
        """How many of the parts name the node as one of theirs."""
        return sum(node in part.only for part in self.parts)


def _size(part: Part) -> tuple[int, int, int, int]:
    bound = -len(part.only) if part.only else -UNBOUND + len(part.never)
    return (bound, part.each.gpu_count, part.each.memory_mib, part.each.cpu_milli)


def shape_of(*parts: Part) -> ResourceShape:
    """A shape of its own."""
    return ResourceShape(parts)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One request that waits for all of its shape at once (a gang).

    The ranks are an order that admins set: the highest is first on the cluster, or of its workspace.
    `counts` are those of its shape where that is smaller than what was asked for.
    """

    holder: str
    quota_id: int
    shape: ResourceShape
    priority: int = 1
    since: float = 0.0
    owner_id: int = 0
    declared_s: int | None = None
    idle: str = ""
    bids: tuple[Bid, ...] = ()
    cluster_rank: int = 0
    workspace_rank: int = 0
    counts: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class HeldResources:
    """The amounts of an active reservation by node; `ends_at` is its declared end, None without one.

    Until `safe_until` nobody with a right to what it borrows may have it back.  `counts` are the replicas of
    each part of its shape, None where it has all of them.
    """

    holder: str
    quota_id: int
    amounts: Amounts
    placement: tuple[tuple[str, Amounts], ...] = ()
    owner_id: int = 0
    priority: int = 1
    since: float = 0.0
    borrowed: bool = False
    running: bool = True
    coming: bool = False
    ends_at: float | None = None
    safe_until: float = 0.0
    shape: ResourceShape | None = None
    bids: tuple[Bid, ...] = ()
    counts: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about a request: a placement (node, amounts), or why it waits.

    `params` fill the sentence (`wanted`, `free`, `kind`, `ahead` …).  `counts` are the replicas of each part
    with which an elastic request starts, None for all of them.
    """

    holder: str
    placement: tuple[tuple[str, Amounts], ...] = ()
    why: Why | None = None
    params: Params = field(default_factory=dict)
    borrowed: bool = False
    quota_id: int = 0
    gpus: int = 0
    counts: tuple[int, ...] | None = None

    @property
    def admitted(self) -> bool:
        """Whether it starts now."""
        return self.why is None


@dataclass(frozen=True, slots=True)
class Window:
    """A time that is to be free: nothing starts that could still run at `begins`, and nothing until `ends`.

    What declares no longest time is not started any more `lead_s` before.
    """

    begins: float
    ends: float
    lead_s: float = 0.0

    def stops(self, now: float, declared_s: int | None) -> bool:
        """Whether something that declares so long a time may not start now."""
        if now >= self.ends:
            return False
        return now + (self.lead_s if declared_s is None else declared_s) > self.begins


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment.  `emptied` are nodes whose time to drain is over; `apart` are those
    that stand in no line: held back by a person, or not to start yet.  While it is `frozen` nothing starts;
    it says why.  `growing` are holders with fewer replicas than they want that may be restarted now.
    """

    now: float
    accounts: Mapping[int, Account]
    machines: Sequence[Machine]
    holdings: Sequence[HeldResources] = ()
    waiting: Sequence[Waiting] = ()
    prices: Mapping[str, Price] = field(default_factory=dict)
    emptied: frozenset[str] = frozenset()
    by_engine: bool = False
    apart: Sequence[Decision] = ()
    frozen: str | None = None
    windows: Sequence[Window] = ()
    growing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TakeBack:
    """A reservation that has to end: for whom, or because the price rose, its node is being emptied, or it
    can start again with more replicas.
    """

    holder: str
    cause: str
    for_holder: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One decision for each request, in the order of admission; who gives back; and the room that is left."""

    decisions: tuple[Decision, ...]
    taken_back: tuple[TakeBack, ...] = ()
    room: tuple[tuple[str, Amounts], ...] = ()
