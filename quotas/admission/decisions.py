"""One pass of admission over a snapshot."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime

from quotas.admission import bids
from quotas.admission.free_capacity import UNLIMITED, Most, Placement, Pool, largest_gap
from quotas.admission.order import AdmissionOrder, Shares
from quotas.admission.placement import Placer
from quotas.admission.quota_usage import QuotaUsage
from quotas.admission.reclaim import choose, reclaimable
from quotas.admission.shadow import NEVER, Shadow, Turns
from quotas.admission.values import (
    Decision,
    HeldResources,
    Outcome,
    Params,
    ResourceShape,
    Snapshot,
    TakeBack,
    Waiting,
    Why,
)
from quotas.amounts import Amounts, total

FORCE, ACCEPT = "force", "accept"
NAMED = 5
"""So many nodes are listed by name."""

LIMIT_REASONS = frozenset({Why.QUOTA, Why.QUOTA_TURN, Why.PERSON})
"""Reasons for which a waiting request reserves what is left of its limits."""

_Key = tuple[ResourceShape, tuple[tuple[str, int], ...]]

PRICE, NODE, OWNER, GROWTH = "price", "node", "owner", "growth"
"""Why something is taken back: its bid, its node, somebody who has a right to it, or room for more replicas
of its own.
"""


def decide(snapshot: Snapshot) -> Outcome:
    """One decision for each waiting request, in the order of admission, and who gives back."""
    deciding = _Pass(snapshot)
    return deciding.by_engine() if snapshot.by_engine else deciding.by_console()


class _Pass:
    """The state of one pass.

    Four pools: what is free; `open`, of which what is set aside for those ahead is taken off; `coming`,
    which also has what was asked back; `most`, which has whatever could be asked back too.  Each only
    shrinks, so that a shape that did not fit once is not tried again.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.now = snapshot.now
        self.snapshot = snapshot
        self.accounts = snapshot.accounts
        self.placer = Placer()
        self.everything = total(machine.has for machine in snapshot.machines)
        self.usage = QuotaUsage(snapshot.accounts, snapshot.holdings, self.everything.gpus)
        lenders = {each.holder for each in reclaimable(snapshot.holdings, snapshot.accounts)}
        latest = ((_latest_end(each, each.holder in lenders), each) for each in snapshot.holdings)
        ends = ((max(self.now, end), each) for end, each in latest if end is not None)
        self.ends = sorted(ends, key=lambda pair: pair[0])
        self.turns = Turns(self.usage, self.ends, self.now)
        self.shares = Shares(self.everything)
        for holding in snapshot.holdings:
            self._count(holding.quota_id, holding.amounts)
        self.decisions: list[Decision] = []
        self.taken_back: list[TakeBack] = []
        self.ahead = 0
        self.ahead_gpus = 0
        self.ahead_in: dict[int, int] = {}
        self._hopeless: dict[_Key, tuple[Why, Params] | None] = {}
        self._never: dict[tuple[ResourceShape, int], tuple[Why, Params] | None] = {}
        self._nothing_left: set[_Key] = set()
        self._not_back: set[_Key] = set()
        self._fitting: set[ResourceShape] = set()
        self._no_room: dict[str, set[_Key]] = {"free": set(), "open": set(), "coming": set(), "most": set()}
        self._of_types: dict[int, dict[str, int]] = {}

    def _count(self, quota_id: int, amounts: Amounts) -> None:
        account = self.accounts.get(quota_id)
        if account is not None:
            self.shares.add(account.workspace_id, amounts.cpu_milli, amounts.memory_mib, amounts.gpu_count)

    def _in_order(self, requests: Iterable[Waiting]) -> AdmissionOrder:
        return AdmissionOrder(
            requests, lambda request: self.accounts[request.quota_id], self.shares, self.now
        )

    def _let_in(self) -> list[Waiting]:
        """Return the requests that may start at all; note on the others what prevents it."""
        if self.snapshot.frozen is not None:
            for request in self._in_order(self.snapshot.waiting):
                self._wait(request, Why.FROZEN, {"because": self.snapshot.frozen or None})
            return []
        if not self.snapshot.windows:
            return list(self.snapshot.waiting)
        let_in = []
        for request in self.snapshot.waiting:
            window = next((w for w in self.snapshot.windows if w.stops(self.now, request.declared_s)), None)
            if window is None:
                let_in.append(request)
                continue
            if (never := self._without_end(request)) is not None:
                self._wait(request, *never)
                continue
            times: Params = {"begins": _moment(window.begins), "until": _moment(window.ends)}
            self._wait(request, Why.MAINTENANCE, times)
        return let_in

    def _without_end(self, request: Waiting) -> tuple[Why, Params] | None:
        """Why it could not start whatever ends, or becomes free."""
        if not self.snapshot.by_engine:
            request = _with_fewer(request, request.shape.spare)
        never = None if self._may_borrow(request) else self._ever(request)
        if never is not None or self.snapshot.by_engine:
            return never
        found = self._impossible(request)
        return None if found is None or found[0] is Why.NO_NODES else found

    # --- the engine schedules ---

    def by_engine(self) -> Outcome:
        """Limits, a bound on what waits at the engine, and over it goes; the engine does the rest."""
        for request in self._in_order(self._let_in()):
            account = self.accounts[request.quota_id]
            pending = self.usage.pending.get(request.quota_id, 0)
            never = self.usage.never(request)
            blocked = never or self._exceeded_limit(request)
            if never is None and blocked is not None and blocked[0] in LIMIT_REASONS:
                self._reserve_under_limits(request)
            if blocked is None and account.most_pending is not None and pending >= account.most_pending:
                blocked = Why.ENGINE_FULL, {"quota": account.name, "pending": pending}
            if blocked is not None:
                self._wait(request, *blocked)
                continue
            self._count_in(request, request.shape.amounts)
            self._admit(request, (), request.shape.amounts, borrowed=False)
        return Outcome((*self.decisions, *self.snapshot.apart))

    # --- the console schedules ---

    def by_console(self) -> Outcome:
        """First those who have a right to what they ask for, then whoever may use what is idle."""
        self._lay_out()
        entitled: list[Waiting] = []
        others: list[Waiting] = []
        for request in self._let_in():
            idle = request.idle == FORCE or self.accounts[request.quota_id].preemptible
            (others if idle else entitled).append(request)
        others += [request for request in self._in_order(entitled) if not self._decide_within_limits(request)]
        for request in self._in_order(others):
            self._idle(request)
        self._grow()
        room = tuple((each.name, each.amounts()) for each in self.open.rooms.values())
        return Outcome((*self.decisions, *self.snapshot.apart), tuple(self.taken_back), room)

    def _lay_out(self) -> None:
        """The pools, and who has to give back whoever asks."""
        self.free = Pool.of(self.snapshot.machines)
        self.free.give(((each.name, each.others) for each in self.snapshot.machines), -1)
        for holding in self.snapshot.holdings:
            self.free.give(holding.placement, -1)
        self.free_total = self.free.total()
        lenders = reclaimable(self.snapshot.holdings, self.accounts)
        self.lenders = [each for each in lenders if not self._must_go(each)]
        leaving = {each.holder for each in self.taken_back}
        self._empty_nodes(leaving)
        self.open = self.free.copy()
        self.coming = self.free.copy()
        for holding in self.snapshot.holdings:
            if holding.coming or holding.holder in leaving:
                self.coming.give(holding.placement)
        self.most = self.coming.copy()
        self.lenders = [each for each in self.lenders if not each.running or each.safe_until <= self.now]
        for holding in self.lenders:
            self.most.give(holding.placement)
        self.shadow = Shadow(self.free, self.ends, self.now, self.placer)

    def _must_go(self, holding: HeldResources) -> bool:
        """Whether the price has risen above what the holder offered."""
        account = self.accounts.get(holding.quota_id)
        if account is None or not account.preemptible:
            return False
        if bids.outbid(holding.shape, holding.bids, self.snapshot.prices) is None:
            return False
        self.taken_back.append(TakeBack(holding.holder, PRICE))
        return True

    def _empty_nodes(self, leaving: set[str]) -> None:
        """Whatever is still on a node whose time to drain is over."""
        for holding in self.snapshot.holdings:
            here = any(name in self.snapshot.emptied for name, _amounts in holding.placement)
            if here and not holding.coming and holding.holder not in leaving:
                self.taken_back.append(TakeBack(holding.holder, NODE))
                leaving.add(holding.holder)
        self.lenders = [each for each in self.lenders if each.holder not in leaving]

    # --- who has a right to it ---

    def _decide_within_limits(self, request: Waiting) -> bool:
        """Decide about a request that counts against its quota; False when it may only borrow."""
        request = self._fit(request, self._can_start)
        never = self._ever(request)
        over = never or self._exceeded_limit(request)
        if over is not None and self._may_borrow(request):
            if over[0] in LIMIT_REASONS:
                self._reserve_under_limits(request)
            return False
        over = never or self._impossible(request) or over
        if over is not None:
            if over[0] in LIMIT_REASONS:
                self._reserve_under_limits(request)
            self._wait(request, *over)
            return True
        if not self._start(request):
            self._queue(request)
        return True

    def _fit(self, request: Waiting, can_start: Callable[[Waiting], bool]) -> Waiting:
        """Return an elastic request with the replicas that can start now, or with as few as it needs."""
        spare = request.shape.spare
        fewer = bisect_left(range(spare), True, key=lambda count: can_start(_with_fewer(request, count)))
        return _with_fewer(request, fewer)

    def _can_start(self, request: Waiting) -> bool:
        """Whether it would start now, within its limits and beside what is set aside."""
        over = self._ever(request) or self._impossible(request) or self._exceeded_limit(request)
        if over is not None:
            return False
        return self._find_placement("open", request, self._drawable_types(request)) is not None

    def _can_start_idle(self, request: Waiting) -> bool:
        """Whether it would start now on what nobody else waits for."""
        if self.accounts[request.quota_id].preemptible:
            return self._can_start(request)
        return self._impossible(request) is None and self._find_placement("open", request) is not None

    def _may_borrow(self, request: Waiting) -> bool:
        account = self.accounts[request.quota_id]
        return bool(request.idle) and account.may_borrow and not account.public and not account.preemptible

    def _exceeded_limit(self, request: Waiting) -> tuple[Why, Params] | None:
        """Return the limit that it would exceed, or that is reserved for requests ahead of it."""
        over = self.usage.refuses(request)
        if over is not None:
            return over
        reserved = self.usage.find_reserved_limit(request)
        if reserved is None or self.turns.passes(request):
            return None
        level, quota = reserved
        params: Params = {"quota": quota, "ahead": self.ahead_in.get(request.quota_id, 0)}
        return Why.QUOTA_TURN, params if isinstance(level, int) else {**params, "of": "person"}

    def _reserve_under_limits(self, request: Waiting) -> None:
        """Reserve what is left of its limits: nothing behind it uses that longer than it waits."""
        self.ahead_in[request.quota_id] = self.ahead_in.get(request.quota_id, 0) + 1
        self.turns.cast(request)

    def _start(self, request: Waiting) -> bool:
        """Start it where it fits beside what is set aside, or where it is over before that is needed."""
        left = self._drawable_types(request, claims=self.usage.find_reserved_limit(request) is None)
        placement = self._find_placement("open", request, left)
        if placement is None and left and self.turns.passes(request):
            left = self._drawable_types(request)
            placement = self._find_placement("open", request, left)
        between = placement is None and self.shadow.passes(request.declared_s)
        if between:
            placement = self._find_placement("free", request, left)
        if placement is None:
            return False
        amounts = total(here for _node, here in placement)
        self._take(placement, amounts, between=between)
        self._count_in(request, amounts)
        self._admit(request, placement, amounts, borrowed=False)
        return True

    def _count_in(self, request: Waiting, amounts: Amounts) -> None:
        """Count what it holds; where it fills in, that is a part of what is set aside for others."""
        if self.usage.find_reserved_limit(request) is None:
            self.usage.add(request.quota_id, request.owner_id, amounts)
        else:
            self.usage.add_between(request.quota_id, request.owner_id, amounts)

    def _queue(self, request: Waiting) -> None:
        """It waits for room: for what is coming, for what is taken back for it now, or for others to end."""
        self.ahead_in[request.quota_id] = self.ahead_in.get(request.quota_id, 0) + 1
        left = self._drawable_types(request)
        plan = self._find_placement("coming", request, left)
        if plan is None:
            plan = self._take_back(request, left)
        if plan is None:
            types = self._types_over(request, left)
            if types is None:
                self._wait_for_room(request, Why.CAPACITY)
            else:
                self._wait(request, *types)
            self.shadow.cast(request.shape)
            self.turns.cast(request, self.shadow.moment)
            self._set_aside(request, left)
            return
        self._wait_for_room(request, Why.COMING)
        self.shadow.close()
        self.turns.cast(request, NEVER)
        self.coming.give(plan, -1)
        self.most.give(plan, -1)
        self.open.set_aside(request.shape, left)

    def _types_over(self, request: Waiting, left: Most) -> tuple[Why, Params] | None:
        """The limit of a type of GPU that keeps it from the room that there is; None where none does."""
        if not left or self._find_placement("open", request) is None:
            return None
        for kind in sorted(left):
            more = {name: most for name, most in left.items() if name != kind}
            placement = self._find_placement("open", request, more)
            if placement is not None:
                wanted = total(here for _node, here in placement).gpus[kind]
                account, used = self.usage.lowest_of_type(request.quota_id, kind)
                limit = account.limits.gpus_by_type[kind]
                params: Params = {"quota": account.name, "kind": kind, "wanted": wanted}
                return Why.QUOTA, {**params, "used": used, "limit": limit}
        return Why.QUOTA, {"quota": self.accounts[request.quota_id].name}

    def _take_back(self, request: Waiting, left: Most) -> Placement | None:
        """Choose borrowers that must give back for it, unless a request ahead waits for the same."""
        key = self._key(request, left)
        if not self.lenders or key in self._not_back or self._find_placement("most", request, left) is None:
            return None
        self._not_back.add(key)
        found = choose(request.shape, self.coming, self.lenders, self.placer, left)
        if found is None:
            return None
        chosen, plan = found
        self.coming.give(plan)
        if not self.most.covers(plan):
            for holding in chosen:
                self.coming.give(holding.placement, -1)
            return None
        self._no_room["coming"].clear()
        self._not_back.discard(key)
        gone = {each.holder for each in chosen}
        self.taken_back += [TakeBack(each.holder, OWNER, request.holder) for each in chosen]
        self.lenders = [each for each in self.lenders if each.holder not in gone]
        return plan

    def _set_aside(self, request: Waiting, left: Most = UNLIMITED) -> None:
        key = self._key(request, left)
        if key in self._nothing_left:
            return
        anything = self.open.set_aside(request.shape, left)
        anything |= self.coming.set_aside(request.shape, left)
        anything |= self.most.set_aside(request.shape, left)
        if not anything:
            self._nothing_left.add(key)

    # --- who uses what is idle ---

    def _idle(self, request: Waiting) -> None:
        """Decide about a borrower, or a bidder for preemptible resources: only what nobody else waits for."""
        request = self._fit(request, self._can_start_idle)
        account = self.accounts[request.quota_id]
        over: tuple[Why, Params] | None = None
        if account.preemptible:
            price = bids.outbid(request.shape, request.bids, self.snapshot.prices)
            over = (Why.OUTBID, price) if price is not None else self._ever(request)
        elif not account.may_borrow or account.public:
            over = Why.QUOTA, {"quota": account.name}
        over = over or self._impossible(request)
        if over is None and account.preemptible:
            over = self._exceeded_limit(request)
            if over is not None and over[0] in LIMIT_REASONS:
                self._reserve_under_limits(request)
        if over is not None:
            self._wait(request, *over)
            return
        left = self._drawable_types(request) if account.preemptible else UNLIMITED
        placement = self._find_placement("open", request, left)
        if placement is None:
            self._wait_for_room(request, Why.IDLE)
            if account.preemptible:
                self.turns.cast(request, NEVER)
            self._set_aside(request, left)
            return
        amounts = total(here for _node, here in placement)
        self._take(placement, amounts)
        if account.preemptible:
            self._count_in(request, amounts)
        self._admit(request, placement, amounts, borrowed=not account.preemptible)

    # --- who may have more ---

    def _grow(self) -> None:
        """Have elastic holders end that would start again with more replicas, while nobody waits for room."""
        if self.ahead:
            return
        leaving = {each.holder for each in self.taken_back}
        for holding in self.snapshot.holdings:
            if (
                holding.holder in self.snapshot.growing
                and not holding.coming
                and holding.holder not in leaving
            ):
                more = self._find_growth(holding)
                if more is not None:
                    self.open.give(more, -1)
                    self.taken_back.append(TakeBack(holding.holder, GROWTH))

    def _find_growth(self, holding: HeldResources) -> Placement | None:
        """Return where one more replica of a holder would find room within its limits; None for nowhere."""
        shape, counts = holding.shape, holding.counts
        if shape is None or counts is None or holding.quota_id not in self.accounts:
            return None
        lacking = next(
            (part for part, has in zip(shape.parts, counts, strict=True) if has < part.count), None
        )
        if lacking is None:
            return None
        larger = shape.without(max(0, sum(shape.counts) - sum(counts) - 1))
        others = [each for each in self.snapshot.holdings if each is not holding]
        usage = QuotaUsage(self.accounts, others, self.everything.gpus)
        request = Waiting(holding.holder, holding.quota_id, larger, owner_id=holding.owner_id)
        if not holding.borrowed and usage.refuses(request) is not None:
            return None
        one = ResourceShape((replace(lacking, count=1, least=None),))
        placement = self.placer.place(self.open, one)
        if placement is not None:
            self.open.give(placement)
        return placement

    # --- what all of them need ---

    def _drawable_types(self, request: Waiting, *, claims: bool = False) -> Most:
        """Of which types it may draw how many GPUs, where it names none and its limits do."""
        if "" not in request.shape.amounts.gpus or not self._most_of_types(request.quota_id):
            return UNLIMITED
        return self.usage.left_of_types(request, claims=claims)

    def _most_of_types(self, quota_id: int) -> dict[str, int]:
        if quota_id not in self._of_types:
            self._of_types[quota_id] = self.usage.most_of_types(quota_id)
        return self._of_types[quota_id]

    def _key(self, request: Waiting, left: Most) -> _Key:
        """Return a key: requests with the same key fit, or do not fit, into the same free capacity.

        What is left of a quota's types only shrinks during a pass, but for who fills in.
        """
        return request.shape, tuple(sorted(left.items()))

    def _find_placement(self, which: str, request: Waiting, left: Most = UNLIMITED) -> Placement | None:
        """Return the placement of a request in a pool, without changing the pool."""
        key = self._key(request, left)
        if key in self._no_room[which]:
            return None
        pool: Pool = getattr(self, which)
        placement = self.placer.place(pool, request.shape, left)
        if placement is None:
            self._no_room[which].add(key)
            return None
        pool.give(placement)
        return placement

    def _would_fit(self, request: Waiting) -> bool:
        """Whether there would be room if nobody stood ahead."""
        if request.shape not in self._fitting:
            if self._find_placement("free", request) is None:
                return False
            self._fitting.add(request.shape)
        return True

    def _take(self, placement: Placement, amounts: Amounts, *, between: bool = False) -> None:
        """It is held from now on, in every pool."""
        self._fitting.clear()
        self.free.give(placement, -1)
        self.free_total -= amounts
        self.coming.give(placement, -1)
        self.most.give(placement, -1)
        if between:
            self.open.at_most(self.free, [name for name, _amounts in placement])
        else:
            self.open.give(placement, -1)

    def _admit(self, request: Waiting, placement: Placement, amounts: Amounts, *, borrowed: bool) -> None:
        self._count(request.quota_id, amounts)
        self.decisions.append(
            Decision(
                request.holder,
                placement,
                borrowed=borrowed,
                quota_id=request.quota_id,
                gpus=request.shape.gpu_count,
                counts=request.counts,
            )
        )

    def _wait(self, request: Waiting, why: Why, params: Params) -> None:
        """It waits for something that is nobody else's: it holds nobody up."""
        self.decisions.append(
            Decision(
                request.holder,
                why=why,
                params=params,
                quota_id=request.quota_id,
                gpus=request.shape.gpu_count,
            )
        )

    def _wait_for_room(self, request: Waiting, why: Why) -> None:
        """It waits for room, and everybody behind it waits too: its share grows, and they hear of it."""
        shape = request.shape
        params: Params = {"ahead": self.ahead, "ahead_gpus": self.ahead_gpus}
        gap = largest_gap(shape.amounts, self.free_total)
        if gap is not None:
            params |= {"kind": gap[0], "wanted": gap[1], "free": gap[2]}
        elif why is Why.CAPACITY and self.ahead and self._would_fit(request):
            why = Why.TURN
        else:
            params |= {"kind": "one_node", "wanted": shape.parts[0].each.cpu_milli}
        if why is not Why.COMING and (shape, ()) not in self._nothing_left:
            params |= self._now_possible(shape)
        self._wait(request, why, params)
        self.ahead += 1
        self.ahead_gpus += shape.gpu_count
        self._count(request.quota_id, shape.amounts)

    def _now_possible(self, shape: ResourceShape) -> Params:
        """How many of its replicas, or GPUs of its one replica, would start now; nothing when none would."""
        if len(shape.parts) != 1:
            return {}
        part = shape.parts[0]
        if part.count > 1:
            fits = self.open.fits(part)
            return {"fits_now": fits} if fits else {}
        kind, wanted = next(iter(part.each.gpus.items()), ("", 0))
        rest = Amounts(part.each.cpu_milli, part.each.memory_mib)
        there = (each for each in self.open.rooms.values() if part.may_use(each.name) and each.fits(rest))
        most = max((room.gpus_of(kind) for room in there), default=0)
        return {"gpus_now": most} if 0 < most < wanted else {}

    def _ever(self, request: Waiting) -> tuple[Why, Params] | None:
        key = (request.shape, request.quota_id)
        if key not in self._never:
            self._never[key] = self.usage.never(request)
        return self._never[key]

    def _impossible(self, request: Waiting) -> tuple[Why, Params] | None:
        """Why the request could not start even on an idle cluster."""
        most: Most = UNLIMITED
        if "" in request.shape.amounts.gpus and not self._may_borrow(request):
            most = self._most_of_types(request.quota_id)
        key = self._key(request, most)
        if key not in self._hopeless:
            self._hopeless[key] = self._judge(request.shape)
            if self._hopeless[key] is None and most:
                self._hopeless[key] = self._judge_types(request, most)
        return self._hopeless[key]

    def _judge_types(self, request: Waiting, most: Most) -> tuple[Why, Params] | None:
        """Whether nodes and the limits of types, each of which would do, leave nothing together."""
        if self.placer.place(Pool.of(self.snapshot.machines), request.shape, most) is not None:
            return None
        there = self.everything.gpus
        limit = sum(min(count, most.get(kind, count)) for kind, count in there.items())
        name = self.accounts[request.quota_id].name
        wanted = request.shape.gpu_count
        return Why.EXCEEDS_QUOTA, {"quota": name, "kind": "gpu", "wanted": wanted, "limit": limit, "used": 0}

    def _judge(self, shape: ResourceShape) -> tuple[Why, Params] | None:
        if not self.snapshot.machines:
            return Why.NO_NODES, {}
        for kind in shape.amounts.gpus:
            if kind and not self.everything.gpus.get(kind):
                types = ", ".join(sorted(self.everything.gpus)) or None
                return Why.NO_SUCH_GPU, {"gpu_type": kind, "types": types}
        place = self.placer.place
        if place(Pool.of(self.snapshot.machines), shape) is not None:
            return None
        everywhere = Pool.of_all(self.snapshot.machines)
        if place(everywhere.copy(), shape) is not None:
            return Why.NO_NODES, self._drain_reasons()
        if shape.is_choosy and place(everywhere, shape.anywhere) is not None:
            return Why.NO_SUCH_NODE, self._no_node_for(shape)
        gap = largest_gap(shape.amounts, self.everything)
        if gap is None:
            return Why.EXCEEDS_CLUSTER, {"kind": "one_node", "wanted": shape.parts[0].each.cpu_milli}
        return Why.EXCEEDS_CLUSTER, {"kind": gap[0], "wanted": gap[1], "most": gap[2]}

    def _drain_reasons(self) -> Params:
        """Why every node on which nothing starts is being emptied; nothing where one is not."""
        closed = [machine for machine in self.snapshot.machines if not machine.usable]
        if any(machine.draining is None for machine in closed):
            return {}
        reasons = dict.fromkeys(machine.draining for machine in closed if machine.draining)
        return {"drained": "; ".join(reasons) or None, "draining": 1}

    def _no_node_for(self, shape: ResourceShape) -> Params:
        """Return why no node is suitable: unknown names, too small, or excluded by the request."""
        there = {machine.name for machine in self.snapshot.machines}
        bound = list(dict.fromkeys(name for part in shape.parts for name in part.only))
        missing = [part.only for part in shape.parts if part.only and not there.intersection(part.only)]
        if missing:
            return {"missing": _names(missing[0])}
        if bound:
            return {"nodes": _names(bound)}
        return {"shunned": _names(dict.fromkeys(name for part in shape.parts for name in part.never))}


def _with_fewer(request: Waiting, fewer: int) -> Waiting:
    """Return an elastic request for so many replicas less; the same one for none."""
    if not fewer:
        return request
    smaller = request.shape.without(fewer)
    return replace(request, shape=smaller, counts=smaller.counts)


def _names(nodes: Iterable[str]) -> str:
    """Some names, and that there are more."""
    names = list(nodes)
    return ", ".join(names[:NAMED]) + (" …" if len(names) > NAMED else "")


def _latest_end(holding: HeldResources, lends: bool) -> float | None:
    """When it is over at the latest: by its declaration, or as it has to give back what it borrows."""
    if not lends:
        return holding.ends_at
    return holding.safe_until if holding.ends_at is None else min(holding.safe_until, holding.ends_at)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="seconds")
