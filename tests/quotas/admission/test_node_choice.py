"""Nodes by name: what is bound to some, or keeps away from some, starts there or says why it can't."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas import ledger
from quotas.admission import (
    Account,
    Decision,
    HeldResources,
    Machine,
    Outcome,
    Snapshot,
    Waiting,
    Why,
    decide,
    shape_of,
    snapshot,
)
from quotas.admission.free_capacity import Pool
from quotas.admission.placement import Placer
from quotas.amounts import Amounts, Part, total
from quotas.models import Node, Request
from tests.factories import make_quota, make_user

GiB = 1024
NOW = 1_000_000.0
OPEN = Account(1, "open", 1)
GPU = Amounts(1000, GiB, {"A100": 1})


def machine(name: str, gpus: int = 2, usable: bool = True) -> Machine:
    return Machine(name, Amounts(8000, 64 * GiB, {"A100": gpus}), usable)


def part(count: int = 1, each: Amounts = GPU, **where: Any) -> Part:
    return Part(count, each, **where)


def ask(holder: str, *parts: Part, age: float = 0.0, **terms: Any) -> Waiting:
    return Waiting(holder, 1, shape_of(*parts), since=NOW - age, **terms)


def passed(
    waiting: list[Waiting], machines: list[Machine], holdings: tuple[HeldResources, ...] = ()
) -> Outcome:
    return decide(Snapshot(NOW, {1: OPEN}, machines, holdings, waiting))


def only(outcome: Outcome) -> Decision:
    (decision,) = outcome.decisions
    return decision


def nodes(decision: Decision) -> set[str]:
    return {name for name, _amounts in decision.placement}


THREE = [machine("n1"), machine("n2"), machine("n3")]


def test_job_starts_on_its_named_nodes() -> None:
    assert nodes(only(passed([ask("a", part(only=("n3",)))], THREE))) == {"n3"}
    assert nodes(only(passed([ask("a", part(4, only=("n3", "n2")))], THREE))) == {"n2", "n3"}


def test_job_avoids_its_excluded_nodes() -> None:
    assert nodes(only(passed([ask("a", part(4, never=("n2",)))], THREE))) == {"n1", "n3"}


def test_job_waits_for_its_named_nodes_despite_other_free_nodes() -> None:
    holding = HeldResources("h", 1, GPU.times(2), (("n1", GPU.times(2)),))
    decision = only(passed([ask("a", part(only=("n1",)))], THREE, (holding,)))
    assert decision.why is Why.CAPACITY


def test_waiting_job_reserves_room_on_its_named_nodes_only() -> None:
    """The one behind may use every other node, and not the one that the first waits for."""
    holding = HeldResources("h", 1, GPU, (("n1", GPU),))
    first = ask("a", part(2, only=("n1",)), age=100)
    outcome = passed([first, ask("b", part(4)), ask("c", part())], THREE, (holding,))
    found = {decision.holder: decision for decision in outcome.decisions}
    assert found["a"].why is Why.CAPACITY
    assert nodes(found["b"]) == {"n2", "n3"}
    assert not found["c"].admitted


def test_bound_role_is_placed_before_unbound_role() -> None:
    decision = only(passed([ask("a", part(2, GPU.times(2)), part(1, only=("n1",)))], THREE))
    assert decision.admitted
    assert dict(decision.placement)["n1"] == GPU


def test_bound_roles_do_not_take_the_only_node_of_each_other() -> None:
    one = [machine(name, 1) for name in ("n1", "n2", "n3")]
    shape = (part(only=("n2", "n3")), part(2, only=("n1", "n2")))
    assert only(passed([ask("a", *shape)], one)).admitted


@pytest.mark.parametrize(
    ("wanted", "params"),
    [
        (part(only=("n9",)), {"missing": "n9"}),
        (part(3, only=("n1", "n9")), {"nodes": "n1, n9"}),
        (part(never=("n1", "n2", "n3")), {"shunned": "n1, n2, n3"}),
        (part(only=("n4", "n5", "n6", "n7", "n8", "n9")), {"missing": "n4, n5, n6, n7, n8 …"}),
    ],
)
def test_job_without_a_possible_node_gives_no_such_node_reason(wanted: Part, params: dict[str, str]) -> None:
    decision = only(passed([ask("a", wanted)], THREE))
    assert (decision.why, decision.params) == (Why.NO_SUCH_NODE, params)


def test_job_bound_to_missing_node_does_not_delay_others() -> None:
    outcome = passed([ask("a", part(only=("n9",)), age=100), ask("b", part(6))], THREE)
    assert [decision.admitted for decision in outcome.decisions] == [False, True]


def test_bound_job_larger_than_the_cluster_exceeds_cluster() -> None:
    assert only(passed([ask("a", part(7, only=("n1",)))], THREE)).why is Why.EXCEEDS_CLUSTER


def test_job_bound_to_cordoned_node_gives_no_nodes_reason() -> None:
    machines = [machine("n1", usable=False), machine("n2")]
    assert only(passed([ask("a", part(only=("n1",)))], machines)).why is Why.NO_NODES


def test_borrowers_on_other_nodes_are_not_taken_back() -> None:
    borrowed = [
        HeldResources(name, 1, GPU.times(2), ((node, GPU.times(2)),), since=NOW - age, borrowed=True)
        for name, node, age in (("x", "n1", 30), ("y", "n2", 20), ("z", "n3", 10))
    ]
    outcome = passed([ask("a", part(only=("n1",)))], THREE, tuple(borrowed))
    assert [each.holder for each in outcome.taken_back] == ["x"]


# --- laws ------------------------------------------------------------------------------------------------

NAMES = ("n1", "n2", "n3", "n9")
chosen = st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple)
each = st.builds(
    lambda cpu, gpus: Amounts(cpu * 1000, GiB, {"A100": gpus} if gpus else {}),
    st.integers(1, 4),
    st.integers(0, 2),
)
parts = st.builds(Part, st.integers(1, 4), each, chosen, chosen)
there = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(
    lambda gpus: [machine(f"n{number + 1}", count) for number, count in enumerate(gpus)]
)


@given(st.lists(parts, min_size=1, max_size=6), there)
def test_placements_respect_node_choice_and_never_exceed_nodes(
    wanted: list[Part], machines: list[Machine]
) -> None:
    waiting = [ask(str(number), each, age=number) for number, each in enumerate(wanted)]
    outcome = passed(waiting, machines)
    asked = {request.holder: request.shape.parts[0] for request in waiting}
    for decision in outcome.decisions:
        if decision.admitted:
            mine = asked[decision.holder]
            assert all(mine.may_use(name) for name in nodes(decision))
            placed = total(here for _name, here in decision.placement)
            assert placed.to_json() == mine.each.times(mine.count).to_json()
    for node in machines:
        here = total(a for d in outcome.decisions for name, a in d.placement if name == node.name)
        assert here.gpu_count <= node.has.gpu_count
        assert here.cpu_milli <= node.has.cpu_milli


@given(parts, there)
def test_lone_job_starts_exactly_if_its_allowed_nodes_hold_it(wanted: Part, machines: list[Machine]) -> None:
    def room(permitted: bool) -> int:
        count = 0
        for node in machines:
            if not permitted or wanted.may_use(node.name):
                by_cpu = node.has.cpu_milli // wanted.each.cpu_milli
                gpus = wanted.each.gpu_count
                count += min(by_cpu, node.has.gpu_count // gpus) if gpus else by_cpu
        return count

    decision = only(passed([ask("a", wanted)], machines))
    assert decision.admitted == (room(permitted=True) >= wanted.count)
    if decision.why is Why.NO_SUCH_NODE:
        assert room(permitted=True) < wanted.count <= room(permitted=False)
    elif not decision.admitted:
        assert room(permitted=False) < wanted.count


@given(st.lists(parts, min_size=1, max_size=3), there)
def test_failed_placement_leaves_the_pool_unchanged(wanted: list[Part], machines: list[Machine]) -> None:
    pool = Pool.of(machines)
    before = pool.total()
    placement = Placer().place(pool, shape_of(*wanted))
    taken = total(here for _name, here in placement or ())
    assert (pool.total() + taken).to_json() == before.to_json()


@given(parts)
def test_part_survives_json_round_trip(wanted: Part) -> None:
    again = Part.from_json(wanted.to_json())
    assert (again.count, again.only, again.never) == (wanted.count, wanted.only, wanted.never)
    assert again.each.to_json() == wanted.each.to_json()
    assert len(wanted.to_json()) == 2 + wanted.is_choosy


# --- in the ledger ---------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_ledger_stores_node_choice_and_distinguishes_request_shapes() -> None:
    quota, owner = make_quota(), make_user()
    Node.objects.create(cluster=quota.cluster, name="n1", cpu_milli=8000, memory_mib=64 * GiB)
    plain = Part(1, Amounts(1000, GiB))
    bound = Part(1, Amounts(1000, GiB), only=("n1",))
    for holder, wanted in (("a", plain), ("b", bound), ("c", Part(1, Amounts(1000, GiB), never=("n1",)))):
        ledger.ask(holder, quota=quota, owner=owner, parts=[wanted], priority=1, declared_s=None)
    assert Request.objects.get(holder="a").parts == [[1, {"cpu_milli": 1000, "memory_mib": GiB, "gpus": {}}]]
    assert ledger.parts_of(Request.objects.get(holder="b")) == [bound]
    now = snapshot.take(quota.cluster)
    assert len({request.shape for request in now.waiting}) == 3
    verdicts = {decision.holder: decision.why for decision in decide(now).decisions}
    assert verdicts == {"a": None, "b": None, "c": Why.NO_SUCH_NODE}
    ledger.reserve(Request.objects.get(holder="b"), [])
    assert snapshot.take(quota.cluster).holdings[0].amounts.cpu_milli == 1000
