"""Nobody waits for ever: random clusters in which smaller jobs keep coming behind a waiting one.

Beside it: what is placed, against all ways to place it; and that the reason shown, once acted on, starts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quotas.admission import (
    Account,
    Decision,
    HeldResources,
    Limits,
    Machine,
    Snapshot,
    Waiting,
    Why,
    decide,
    shape_of,
)
from quotas.admission.free_capacity import Pool
from quotas.admission.placement import Placer
from quotas.amounts import Amounts, Part, total
from quotas.models.limits import LEAST_RUNNING_S
from tests.quotas.admission.world import Job, Quota, World

TICK = 600.0
NOW = 1_000_000.0
GiB = 1024

# --- what is placed -------------------------------------------------------------------------------------

small_parts = st.builds(
    lambda count, cores, gpus, kind: Part(count, Amounts(cores * 1000, GiB, {kind: gpus} if gpus else {})),
    st.integers(1, 2),
    st.integers(1, 2),
    st.integers(0, 3),
    st.sampled_from(["", "", "A", "V"]),
)
small_nodes = st.lists(
    st.builds(
        lambda cores, a, v: (cores, {"A": a, "V": v}), st.integers(1, 5), st.integers(0, 3), st.integers(0, 3)
    ),
    min_size=1,
    max_size=3,
)
limits_of_types = st.dictionaries(st.sampled_from(["A", "V"]), st.integers(0, 4))


def _fits_in_some_way(
    replicas: list[Amounts], free: list[tuple[int, dict[str, int]]], left: dict[str, int]
) -> bool:
    """Try each replica on each node with each mix of types."""
    if not replicas:
        return True
    each, rest = replicas[0], replicas[1:]
    for number, (cores, gpus) in enumerate(free):
        if cores * 1000 < each.cpu_milli:
            continue
        for drawn in _draws(each):
            if any(gpus[kind] < count for kind, count in drawn.items()):
                continue
            if any(left.get(kind, 99) < count for kind, count in drawn.items()):
                continue
            then = [*free]
            then[number] = (cores - each.cpu_milli // 1000, {k: v - drawn[k] for k, v in gpus.items()})
            if _fits_in_some_way(rest, then, {kind: most - drawn[kind] for kind, most in left.items()}):
                return True
    return False


def _draws(each: Amounts) -> Iterator[Counter[str]]:
    named = Counter({kind: count for kind, count in each.gpus.items() if kind})
    for kinds in combinations_with_replacement("AV", each.gpus.get("", 0)):
        yield named + Counter(kinds)


@settings(max_examples=300, deadline=None)
@given(st.lists(small_parts, min_size=1, max_size=2), small_nodes, limits_of_types)
def test_placement_is_found_exactly_if_one_exists(
    parts: list[Part], nodes: list[tuple[int, dict[str, int]]], most: dict[str, int]
) -> None:
    machines = [Machine(f"n{i}", Amounts(c * 1000, 64 * GiB, gpus)) for i, (c, gpus) in enumerate(nodes)]
    shape = shape_of(*parts)
    named = shape.amounts.gpus
    pool = Pool.of(machines)
    found = Placer().place(pool, shape, most if "" in named else {})
    limits = most if "" in named else {}
    replicas = [part.each for part in parts for _each in range(part.count)]
    assert (found is not None) == _fits_in_some_way(replicas, nodes, limits)
    if found is not None:
        got = total(here for _node, here in found)
        assert (got.cpu_milli, got.gpu_count) == (shape.amounts.cpu_milli, shape.gpu_count)
        assert all(got.gpus.get(kind, 0) <= limits.get(kind, 99) for kind in got.gpus)
        assert all(got.gpus.get(kind, 0) >= count for kind, count in named.items() if kind)
        assert all(room.cpu_milli >= 0 and min(room.gpus.values()) >= 0 for room in pool.rooms.values())


# --- the cases that were seen ---------------------------------------------------------------------------


def _gpus(count: int, kind: str = "") -> Amounts:
    return Amounts(1000, GiB, {kind: count})


def _ask(holder: str, each: Amounts, quota: int = 1, **terms: Any) -> Waiting:
    return Waiting(holder, quota, shape_of(Part(1, each)), **{"since": NOW - 60, **terms})


def _held(holder: str, amounts: Amounts, **facts: Any) -> HeldResources:
    return HeldResources(holder, 1, amounts, (("n1", amounts),), since=NOW - 500, **facts)


EIGHT = Machine("n1", Amounts(32_000, 64 * GiB, {"A100": 4, "V100": 4}))


def _decided(
    waiting: list[Waiting], account: Account, holdings: tuple[HeldResources, ...] = (), now: float = NOW
) -> dict[str, Decision]:
    outcome = decide(Snapshot(now, {account.id: account}, [EIGHT], holdings, waiting))
    return {each.holder: each for each in outcome.decisions}


def test_untyped_job_draws_from_every_type_allowed_by_its_quota() -> None:
    speech = Account(1, "Speech", 1, Limits(gpus=3, gpus_by_type={"A100": 2, "V100": 1}))
    decision = _decided([_ask("a", _gpus(3))], speech)["a"]
    assert dict(decision.placement)["n1"].gpus == {"A100": 2, "V100": 1}


def test_untyped_job_takes_another_type_when_one_is_used_up() -> None:
    speech = Account(1, "Speech", 1, Limits(gpus_by_type={"A100": 2, "V100": 1}))
    decision = _decided([_ask("a", _gpus(1))], speech, (_held("x", _gpus(2, "A100")),))["a"]
    assert dict(decision.placement)["n1"].gpus == {"V100": 1}


def test_untyped_job_reports_the_type_with_the_exhausted_limit() -> None:
    speech = Account(1, "Speech", 1, Limits(gpus_by_type={"A100": 2}))
    busy = (
        HeldResources("x", 2, _gpus(4, "V100"), (("n1", _gpus(4, "V100")),)),
        _held("y", _gpus(1, "A100")),
    )
    decision = _decided([_ask("a", _gpus(2))], speech, busy)["a"]
    assert decision.why is Why.QUOTA
    assert (decision.params["kind"], decision.params["used"], decision.params["limit"]) == ("A100", 1, 2)


def test_first_job_of_a_quota_reserves_room_from_smaller_later_ones() -> None:
    three = Account(1, "Speech", 1, Limits(gpus=3))
    busy = (_held("x", _gpus(1, "A100")), _held("y", _gpus(1, "A100")))
    found = _decided([_ask("a", _gpus(3), since=NOW - 99), _ask("b", _gpus(1))], three, busy)
    assert {holder: each.why for holder, each in found.items()} == {"a": Why.QUOTA, "b": Why.QUOTA_TURN}


def test_smaller_job_passes_first_of_its_quota_if_ending_in_time() -> None:
    three = Account(1, "Speech", 1, Limits(gpus=3))
    busy = (_held("x", _gpus(2, "A100"), ends_at=NOW + 600),)

    def behind(declared_s: int | None) -> Why | None:
        queue = [_ask("a", _gpus(3), since=NOW - 99), _ask("b", _gpus(1), declared_s=declared_s)]
        return _decided(queue, three, busy)["b"].why

    assert (behind(600), behind(601), behind(None)) == (None, Why.QUOTA_TURN, Why.QUOTA_TURN)


def test_job_waiting_for_its_quota_does_not_block_other_quotas() -> None:
    accounts = {1: Account(1, "one", 1, Limits(gpus=3)), 2: Account(2, "two", 2)}
    queue = [_ask("a", _gpus(3), since=NOW - 99), _ask("b", _gpus(6), quota=2)]
    outcome = decide(Snapshot(NOW, accounts, [EIGHT], [_held("x", _gpus(1, "A100"))], queue))
    assert {each.holder: each.why for each in outcome.decisions} == {"a": Why.QUOTA, "b": None}


def test_person_limit_is_reserved_for_their_earlier_job() -> None:
    two = Account(1, "Speech", 1, person=Limits(gpus=2))
    queue = [_ask("a", _gpus(2), since=NOW - 99), _ask("b", _gpus(1)), _ask("c", _gpus(1), owner_id=5)]
    found = _decided(queue, two, (_held("x", _gpus(1, "A100")),))
    assert {holder: each.why for holder, each in found.items()} == {
        "a": Why.PERSON,
        "b": Why.QUOTA_TURN,
        "c": None,
    }


def test_borrower_runs_its_minimum_time_before_take_back() -> None:
    lender = Account(1, "lender", 1)
    loan = _held("x", _gpus(8), borrowed=True, safe_until=NOW + LEAST_RUNNING_S)
    queue = [_ask("a", _gpus(4, "A100"))]
    loan = HeldResources(
        "x", 1, EIGHT.has, (("n1", EIGHT.has),), borrowed=True, safe_until=NOW + LEAST_RUNNING_S
    )

    def taken(at: float, holding: HeldResources) -> list[str]:
        outcome = decide(Snapshot(at, {1: lender}, [EIGHT], [holding], queue))
        return [each.holder for each in outcome.taken_back]

    assert taken(NOW, loan) == []
    assert taken(NOW + LEAST_RUNNING_S, loan) == ["x"]
    drained = Snapshot(NOW, {1: lender}, [EIGHT], [loan], (), emptied=frozenset({"n1"}))
    assert [each.holder for each in decide(drained).taken_back] == ["x"]


# --- nobody waits for ever ------------------------------------------------------------------------------

NODES = st.fixed_dictionaries(
    {
        "n1": st.just(Amounts(16_000, 64_000, {"A100": 4})),
        "n2": st.sampled_from(
            [
                Amounts(16_000, 64_000, {"V100": 4}),
                Amounts(16_000, 64_000, {"A100": 2, "V100": 2}),
                Amounts(16_000, 64_000),
            ]
        ),
    }
)
limit = st.one_of(st.none(), st.integers(2, 6))
types = st.sampled_from([{}, {}, {"A100": 2, "V100": 2}, {"A100": 3}, {"V100": 1}])
trees = st.builds(
    lambda whole, one, two, person, jobs, kinds, more: {
        9: Quota(9, gpus=whole),
        1: Quota(1, parent=9, gpus=one, types=kinds, person_gpus=person),
        2: Quota(2, parent=9, gpus=two, types=more, jobs=jobs),
        3: Quota(3, gpus=4, preemptible=True),
    },
    limit,
    limit,
    limit,
    limit,
    st.one_of(st.none(), st.integers(1, 3)),
    types,
    types,
)
gangs = st.tuples(
    st.sampled_from([1, 1, 2, 3]),
    st.integers(1, 3),
    st.builds(
        lambda cores, gpus, kind: Amounts(cores * 1000, 4000, {kind: gpus} if gpus else {}),
        st.integers(1, 4),
        st.integers(0, 3),
        st.sampled_from(["", "", "A100", "V100"]),
    ),
    st.integers(1, 3),
    st.sampled_from(["", "", "accept"]),
)
streams = st.lists(
    st.tuples(
        st.sampled_from([1, 2]),
        st.integers(0, 2),
        st.sampled_from(["", "A100", "V100"]),
        st.sampled_from(["", "", "accept", "force"]),
        st.sampled_from([None, None, 600, 6000]),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=4,
)
LONGEST = 120
"""Ticks after which whoever waited has to have started: two levels of fairness are twelve of them, and what
runs or stands ahead takes three each."""


def _step(world: World, ends: dict[str, float]) -> None:
    """Admit until nothing more starts, as workers do; then everything that is over ends."""
    for _pass in range(20):
        outcome = decide(world.snapshot())
        before = {job.holder for job in world.held()}
        world.apply(outcome)
        for taken in outcome.taken_back:
            assert taken.holder in before
            assert world.may_be_taken(world.jobs[taken.holder])
            ends[taken.holder] = world.now
        for name, (used, most) in world.limits().items():
            assert all(used[resource] <= limit for resource, limit in most.items()), f"{name} is passed"
        if not any(each.admitted for each in outcome.decisions):
            return
    raise AssertionError("it does not settle")


def _end(world: World, ends: dict[str, float], lasts: int) -> None:
    for job in world.held():
        job.running = True
        long = job.declared_s or lasts * TICK
        if ends.setdefault(job.holder, job.began + long) <= world.now:
            del world.jobs[job.holder]


@settings(max_examples=80, deadline=None)
@given(NODES, trees, st.lists(gangs, min_size=1, max_size=4), streams, st.integers(1, 3))
def test_startable_job_is_not_passed_endlessly_by_later_ones(
    nodes: dict[str, Amounts],
    tree: dict[int, Quota],
    first: list[tuple[int, int, Amounts, int, str]],
    stream: list[tuple[int, int, str, str, int | None, int]],
    lasts: int,
) -> None:
    world = World(nodes, tree)
    ends: dict[str, float] = {}
    waiting: list[Job] = [
        world.submit(quota, count, each, priority=priority, idle="" if quota == 3 else idle)
        for quota, count, each, priority, idle in first
    ]
    lowest = min(job.priority for job in waiting)
    for _tick in range(LONGEST):
        world.now += 1.0
        for quota, count, kind, idle, declared_s, priority in stream:
            each = Amounts(1000, 4000, {kind: count} if count else {})
            later = min(priority, lowest)
            world.submit(quota, 1, each, priority=later, idle=idle, declared_s=declared_s)
        _step(world, ends)
        world.now += TICK
        _end(world, ends, lasts)
        waiting = [job for job in waiting if job.placement is None and job.holder in world.jobs]
        if not waiting:
            return
        for job in [job for job in world.waiting() if job not in waiting][:-12]:
            del world.jobs[job.holder]  # people give up: the queue stays short, and never empty
    why = {each.holder: each for each in decide(world.snapshot()).decisions}
    assert not [why[job.holder] for job in waiting if _could_start(world, job)]


def _could_start(world: World, job: Job) -> bool:
    """Whether it has a right to start on an empty cluster.

    Who may only use what is idle, or bids for it, waits as long as others with a right to it come.
    """
    empty = World(world.nodes, world.quotas)
    alone = empty.submit(job.quota, job.count, job.each, priority=job.priority)
    empty.apply(decide(empty.snapshot()))
    return alone.placement is not None and not world.quotas[job.quota].preemptible


# --- the reason shown, acted on ---------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(NODES, trees, gangs, st.lists(gangs, max_size=5))
def test_reason_shown_leads_to_start_once_resolved(
    nodes: dict[str, Amounts],
    tree: dict[int, Quota],
    asked: tuple[int, int, Amounts, int, str],
    busy: list[tuple[int, int, Amounts, int, str]],
) -> None:
    world = World(nodes, tree)
    for quota, count, each, priority, _idle in busy:
        world.submit(quota, count, each, priority=priority)
    world.apply(decide(world.snapshot()))
    for job in world.waiting():
        del world.jobs[job.holder]
    quota, count, each, priority, _idle = asked
    job = world.submit(quota, count, each, priority=priority)
    told: list[Any] = []
    while len(told) < 40:
        outcome = decide(world.snapshot())
        (decision,) = outcome.decisions
        if decision.admitted:
            return
        told.append((decision.why, decision.params))
        if not _act(world, decision, outcome.taken_back):
            return
    raise AssertionError(told)


def _act(world: World, decision: Decision, taken: Any) -> bool:
    """Do what the sentence says would start it; whether there is anything to do."""
    params = decision.params
    if decision.why in {Why.QUOTA, Why.PERSON, Why.EXCEEDS_QUOTA}:
        kind, wanted, used = params["kind"], params["wanted"], params.get("used") or 0
        limit = params["limit"]
        assert isinstance(wanted, int)
        assert isinstance(used, int)
        assert isinstance(limit, int)
        assert wanted + used > limit, "there is too little room, as the sentence says"
        of = world.quotas[int(str(params["quota"]))]
        if params.get("of") == "person":
            assert of.person_gpus == limit
            of.person_gpus = wanted + used
        elif kind == "gpu" and of.gpus == limit:
            of.gpus = wanted + used
        elif kind == "jobs":
            assert of.jobs == limit
            of.jobs = wanted + used
        elif kind == "gpu":
            assert of.types
            of.types = {name: most + wanted + used - limit for name, most in of.types.items()}
        else:
            assert of.types[str(kind)] == limit
            of.types = {**of.types, str(kind): wanted + used}
        return True
    if decision.why is Why.COMING:
        for each in taken:
            del world.jobs[each.holder]
        return True
    if decision.why is Why.CAPACITY:
        held = world.held()
        assert held, "it waits for room, and nobody has any"
        del world.jobs[held[0].holder]
        return True
    assert decision.why in {Why.EXCEEDS_CLUSTER, Why.NO_SUCH_GPU, Why.IDLE}, decision
    return False
