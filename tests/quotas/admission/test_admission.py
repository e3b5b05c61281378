"""Who starts next, and why the others wait: one pass over values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.admission import (
    Account,
    Bid,
    Decision,
    HeldResources,
    Limits,
    Machine,
    Outcome,
    Price,
    Snapshot,
    TakeBack,
    Waiting,
    Why,
    Window,
    decide,
    shape_of,
)
from quotas.admission.order import AGING_S
from quotas.amounts import Amounts, Part, total

GiB = 1024
OPEN = Account(1, "open", 1)
NOW = 1_000_000.0


def gpus(count: int, kind: str = "A100") -> Amounts:
    return Amounts(1000, GiB, {kind: count})


def machine(name: str = "n1", cpu: int = 16_000, memory: int = 64 * GiB, **types: int) -> Machine:
    return Machine(name, Amounts(cpu, memory, types))


def ask(holder: str, each: Amounts, count: int = 1, quota: int = 1, **terms: Any) -> Waiting:
    terms = {"since": NOW - 100 + _age(holder), **terms}
    return Waiting(holder, quota, shape_of(Part(count, each)), **terms)


def _age(holder: str) -> float:
    """Names in the order of the alphabet are ages, the oldest first."""
    return (ord(holder[0]) - ord("a")) / 100


def held(holder: str, amounts: Amounts, node: str = "n1", quota: int = 1, **facts: Any) -> HeldResources:
    return HeldResources(holder, quota, amounts, ((node, amounts),), since=NOW - 500, **facts)


def passed(
    waiting: Sequence[Waiting],
    machines: Sequence[Machine],
    accounts: Sequence[Account] = (OPEN,),
    holdings: Sequence[HeldResources] = (),
    **more: Any,
) -> Outcome:
    by_id = {account.id: account for account in accounts}
    return decide(Snapshot(NOW, by_id, machines, holdings, waiting, **more))


def verdicts(outcome: Outcome) -> dict[str, Why | None]:
    return {decision.holder: decision.why for decision in outcome.decisions}


def only(outcome: Outcome) -> Decision:
    (decision,) = outcome.decisions
    return decision


# --- gang, order, what stands ahead ---------------------------------------------------------------------


def test_fitting_job_starts() -> None:
    assert verdicts(passed([ask("a", gpus(2))], [machine(A100=4)])) == {"a": None}


def test_gang_starts_whole_or_not_at_all() -> None:
    nodes = [machine(A100=4), machine("n2", A100=4)]
    assert only(passed([ask("a", gpus(3), count=3)], nodes)).why is Why.EXCEEDS_CLUSTER
    decision = only(passed([ask("a", gpus(3), count=2)], nodes))
    assert [node for node, _here in decision.placement] == ["n1", "n2"]


def test_unknown_gpu_type_is_refused_with_the_available_types() -> None:
    decision = only(passed([ask("a", gpus(1, "TITANX"))], [machine(A100=1, P100=1)]))
    assert decision.why is Why.NO_SUCH_GPU
    assert decision.params == {"gpu_type": "TITANX", "types": "A100, P100"}


def test_job_without_gpu_type_is_placed_on_any_type() -> None:
    decision = only(passed([ask("a", gpus(2, ""))], [machine(A100=1, P100=1)]))
    assert decision.placement[0][1].gpus == {"A100": 1, "P100": 1}


def test_type_limit_binds_job_without_named_type() -> None:
    few = Account(1, "few", 1, Limits(gpus_by_type={"A100": 1}))
    decision = only(passed([ask("a", gpus(2, ""))], [machine(A100=4)], [few]))
    assert (decision.why, decision.params["kind"], decision.params["limit"]) == (Why.EXCEEDS_QUOTA, "A100", 1)
    busy = [held("x", gpus(1))]
    decision = only(passed([ask("a", gpus(1, ""))], [machine(A100=4)], [few], busy))
    assert (decision.why, decision.params["kind"], decision.params["used"]) == (Why.QUOTA, "A100", 1)


def test_earlier_gang_is_not_delayed_by_later_small_job() -> None:
    busy = [held("x", gpus(2))]
    outcome = passed([ask("a", gpus(4)), ask("b", gpus(1))], [machine(A100=4)], holdings=busy)
    assert verdicts(outcome) == {"a": Why.CAPACITY, "b": Why.TURN}


def test_gang_reserves_room_on_every_node_likely_to_be_freed() -> None:
    nodes = [machine(f"n{i}", A100=4) for i in (1, 2)]
    busy = [held("x", gpus(2), "n1"), held("y", gpus(2), "n2")]
    outcome = passed([ask("a", gpus(4)), ask("b", gpus(1))], nodes, holdings=busy)
    assert verdicts(outcome) == {"a": Why.CAPACITY, "b": Why.TURN}


def test_cpu_job_passes_gang_waiting_for_gpus() -> None:
    outcome = passed(
        [ask("a", gpus(4)), ask("b", Amounts(1000, GiB))], [machine(A100=4)], holdings=[held("x", gpus(2))]
    )
    assert verdicts(outcome) == {"a": Why.CAPACITY, "b": None}


def test_impossible_job_does_not_delay_others() -> None:
    outcome = passed([ask("a", gpus(9)), ask("b", gpus(4))], [machine(A100=4)])
    assert verdicts(outcome) == {"a": Why.EXCEEDS_CLUSTER, "b": None}


def test_higher_priority_goes_first_until_lower_one_has_aged() -> None:
    def first(waited: float) -> str:
        line = [
            ask("a", gpus(4), priority=1, since=NOW - waited),
            ask("b", gpus(4), priority=9, since=NOW),
        ]
        return passed(line, [machine(A100=4)]).decisions[0].holder

    assert first(7 * AGING_S) == "b"
    assert first(9 * AGING_S) == "a"


def test_workspace_holding_less_goes_first() -> None:
    accounts = [Account(1, "much", 1), Account(2, "little", 2)]
    line = [ask("a", gpus(2), quota=1), ask("b", gpus(2), quota=2)]
    outcome = passed(line, [machine(A100=4)], accounts, [held("x", gpus(2), quota=1)])
    assert verdicts(outcome) == {"b": None, "a": Why.CAPACITY}


def test_workspaces_take_turns_with_all_else_equal() -> None:
    accounts = [Account(1, "one", 1), Account(2, "two", 2)]
    line = [ask(name, gpus(1), quota=1 if name < "d" else 2, since=NOW) for name in "abcdef"]
    order = [decision.holder for decision in passed(line, [machine(A100=6)], accounts).decisions]
    assert order == ["a", "d", "b", "e", "c", "f"]


# --- limits -------------------------------------------------------------------------------------------


def test_full_quota_delays_only_its_own_jobs() -> None:
    accounts = [Account(1, "small", 1, Limits(gpus=2)), Account(2, "open", 2)]
    line = [ask("a", gpus(1)), ask("b", gpus(1), quota=2)]
    outcome = passed(line, [machine(A100=4)], accounts, [held("x", gpus(2))])
    assert verdicts(outcome) == {"a": Why.QUOTA, "b": None}
    params = {"quota": "small", "kind": "gpu", "wanted": 1, "used": 2, "limit": 2}
    assert next(each.params for each in outcome.decisions if each.holder == "a") == params


def test_job_larger_than_its_quota_is_refused_with_own_reason() -> None:
    small = Account(1, "small", 1, Limits(gpus_by_type={"A100": 1}))
    assert only(passed([ask("a", gpus(2))], [machine(A100=4)], [small])).why is Why.EXCEEDS_QUOTA


def test_quota_counts_holdings_of_its_child_quotas() -> None:
    accounts = [
        Account(1, "left", 1, Limits(gpus=3), parent_id=3),
        Account(2, "right", 2, parent_id=3),
        Account(3, "both", 3, Limits(gpus=4)),
    ]
    outcome = passed([ask("a", gpus(2))], [machine(A100=8)], accounts, [held("x", gpus(3), quota=2)])
    assert only(outcome).params["quota"] == "both"


def test_person_limit_prevents_taking_the_whole_quota() -> None:
    capped = Account(1, "capped", 1, person=Limits(gpus=2))
    line = [ask("a", gpus(1), owner_id=7), ask("b", gpus(1), owner_id=8)]
    outcome = passed(line, [machine(A100=8)], [capped], [held("x", gpus(2), owner_id=7)])
    assert verdicts(outcome) == {"a": Why.PERSON, "b": None}


def test_public_resources_share_one_person_limit_across_quotas() -> None:
    accounts = [Account(i, "public", i, person=Limits(gpus=2), public=True) for i in (1, 2)]
    outcome = passed(
        [ask("a", gpus(1), owner_id=7)],
        [machine(A100=8)],
        accounts,
        [held("x", gpus(2), quota=2, owner_id=7)],
    )
    assert only(outcome).why is Why.PERSON


def test_quota_without_gpu_hours_left_starts_only_cpu_jobs() -> None:
    spent = Account(1, "spent", 1, hours_left=False)
    outcome = passed([ask("a", gpus(1)), ask("b", Amounts(1000, GiB))], [machine(A100=8)], [spent])
    assert verdicts(outcome) == {"a": Why.HOURS, "b": None}


def test_lowered_limit_stops_no_jobs_and_admits_none() -> None:
    lowered = Account(1, "lowered", 1, Limits(gpus=1))
    outcome = passed([ask("a", gpus(1))], [machine(A100=8)], [lowered], [held("x", gpus(4))])
    assert verdicts(outcome) == {"a": Why.QUOTA}
    assert outcome.taken_back == ()


# --- what would start -----------------------------------------------------------------------------------


def test_waiting_gang_reports_replicas_able_to_start_now() -> None:
    outcome = passed([ask("a", gpus(1), count=8)], [machine(A100=8)], holdings=[held("x", gpus(3))])
    decision = only(outcome)
    assert (decision.why, decision.params["fits_now"], decision.params["free"]) == (Why.CAPACITY, 5, 5)


def test_waiting_single_replica_reports_gpus_free_on_one_node() -> None:
    nodes = [machine("n1", A100=8), machine("n2", A100=8)]
    busy = [held("x", gpus(5), "n1"), held("y", gpus(6), "n2")]
    assert only(passed([ask("a", gpus(8))], nodes, holdings=busy)).params["gpus_now"] == 3


def test_cluster_without_usable_nodes_gives_no_nodes_reason() -> None:
    assert verdicts(passed([ask("a", gpus(1))], [])) == {"a": Why.NO_NODES}
    cordoned = Machine("n1", gpus(4), usable=False)
    assert verdicts(passed([ask("a", gpus(1))], [cordoned])) == {"a": Why.NO_NODES}


# --- backfill -------------------------------------------------------------------------------------------


def test_backfill_requires_a_declared_end_in_time() -> None:
    busy = [held("x", gpus(2), ends_at=NOW + 600)]

    def behind(declared_s: int | None) -> Why | None:
        line = [ask("a", gpus(4)), ask("b", gpus(1), declared_s=declared_s)]
        return verdicts(passed(line, [machine(A100=4)], holdings=busy))["b"]

    assert behind(600) is None
    assert behind(601) is Why.TURN
    assert behind(None) is Why.TURN


def test_backfill_without_known_start_of_the_first_is_refused() -> None:
    busy = [held("x", gpus(2))]
    line = [ask("a", gpus(4)), ask("b", gpus(1), declared_s=1)]
    assert verdicts(passed(line, [machine(A100=4)], holdings=busy))["b"] is Why.TURN


# --- idle resources -------------------------------------------------------------------------------------

SMALL = Account(1, "small", 1, Limits(gpus=2))
LENDER = Account(2, "lender", 2, Limits(gpus=6))


def test_idle_accepting_job_borrows_unused_resources() -> None:
    line = [ask("a", gpus(4), idle="accept"), ask("b", gpus(4))]
    outcome = passed(line, [machine(A100=8)], [SMALL, LENDER])
    assert verdicts(outcome) == {"b": Why.EXCEEDS_QUOTA, "a": None}
    assert [each.borrowed for each in outcome.decisions if each.admitted] == [True]


def test_job_within_its_quota_borrows_only_with_force() -> None:
    for idle, borrowed in (("accept", False), ("force", True)):
        decision = only(passed([ask("a", gpus(1), idle=idle)], [machine(A100=8)], [SMALL]))
        assert (decision.admitted, decision.borrowed) == (True, borrowed)


def test_borrower_never_precedes_job_with_own_quota() -> None:
    line = [ask("a", gpus(8), idle="accept", priority=9), ask("b", gpus(6), quota=2)]
    assert verdicts(passed(line, [machine(A100=8)], [SMALL, LENDER])) == {"b": None, "a": Why.IDLE}


def test_loans_are_taken_back_waiting_then_lowest_then_newest() -> None:
    def lent(holder: str, **facts: Any) -> HeldResources:
        return held(holder, gpus(2), borrowed=True, **facts)

    loans = [
        lent("old", priority=5),
        lent("low", priority=1),
        lent("waits", priority=9, running=False),
        lent("new", priority=5),
    ]
    loans[3] = HeldResources("new", 1, gpus(2), (("n1", gpus(2)),), since=NOW - 1, priority=5, borrowed=True)

    def taken(count: int) -> list[str]:
        line = [ask("a", gpus(count), quota=2)]
        return [each.holder for each in passed(line, [machine(A100=8)], [SMALL, LENDER], loans).taken_back]

    assert taken(2) == ["waits"]
    assert taken(4) == ["waits", "low"]
    assert taken(6) == ["waits", "low", "new"]


def test_take_back_selects_only_useful_loans() -> None:
    nodes = [machine("n1", A100=2), machine("n2", A100=4)]
    loans = [
        held("small", gpus(2), "n1", borrowed=True, running=False),
        held("big", gpus(4), "n2", borrowed=True),
    ]
    outcome = passed([ask("a", gpus(4), quota=2)], nodes, [SMALL, LENDER], loans)
    assert outcome.taken_back == (TakeBack("big", "owner", "a"),)
    assert only(outcome).why is Why.COMING


def test_take_back_in_progress_is_awaited_and_takes_no_more() -> None:
    loans = [held("x", gpus(4), borrowed=True, coming=True), held("y", gpus(4), borrowed=True)]
    line = [ask("a", gpus(4), quota=2), ask("b", gpus(1), idle="force")]
    outcome = passed(line, [machine(A100=8)], [SMALL, LENDER], loans)
    assert verdicts(outcome) == {"a": Why.COMING, "b": Why.IDLE}
    assert outcome.taken_back == ()


def test_take_back_for_later_job_is_blocked_by_waiting_first() -> None:
    whole = Account(2, "whole", 2)
    loans = [held("x", gpus(2), borrowed=True), held("y", gpus(6))]
    line = [ask("a", gpus(8), quota=2, priority=9), ask("b", gpus(2), quota=2)]
    outcome = passed(line, [machine(A100=8)], [SMALL, whole], loans)
    assert verdicts(outcome) == {"a": Why.CAPACITY, "b": Why.CAPACITY}
    assert outcome.taken_back == ()


# --- preemptible resources ------------------------------------------------------------------------------

TWO = gpus(2)
SPOT = Account(1, "spot", 1, preemptible=True)
PRICES = {"A100": Price(1_000_000, 400_000), "": Price(50_000, 20_000)}


def test_bid_below_the_price_is_outbid() -> None:
    def why(bid: Bid, each: Amounts = TWO) -> Why | None:
        line = [ask("a", each, bids=(bid,))]
        return only(passed(line, [machine(A100=4)], [SPOT], prices=PRICES)).why

    assert why(Bid(percent=40)) is None
    assert why(Bid(percent=39)) is Why.OUTBID
    assert why(Bid(micro=800_000)) is None
    assert why(Bid(micro=799_999)) is Why.OUTBID
    assert why(Bid()) is None, "who names no bid pays up to the market price"
    assert why(Bid(micro=19_999), Amounts(1000, GiB)) is Why.OUTBID


def test_price_above_the_bid_takes_back() -> None:
    line = shape_of(Part(1, gpus(2)))
    running = held("x", gpus(2), shape=line, bids=(Bid(percent=30),))
    outcome = passed([], [machine(A100=4)], [SPOT], [running], prices=PRICES)
    assert outcome.taken_back == (TakeBack("x", "price"),)


def test_preemptible_resources_return_to_quota_holders() -> None:
    outcome = passed(
        [ask("a", gpus(4), quota=2)], [machine(A100=4)], [SPOT, LENDER], [held("x", gpus(4))], prices=PRICES
    )
    assert [each.holder for each in outcome.taken_back] == ["x"]


# --- nodes ----------------------------------------------------------------------------------------------


def test_job_on_emptied_node_is_taken_back() -> None:
    nodes = [Machine("n1", gpus(4), usable=False), machine("n2", A100=4)]
    outcome = passed(
        [], nodes, holdings=[held("x", gpus(2)), held("y", gpus(2), "n2")], emptied=frozenset({"n1"})
    )
    assert outcome.taken_back == (TakeBack("x", "node"),)


# --- the engine schedules -------------------------------------------------------------------------------


def test_engine_mode_checks_limits_and_hands_over() -> None:
    one_job = Account(1, "one", 1, Limits(jobs=1))
    outcome = passed([ask("a", gpus(99)), ask("b", gpus(1))], [], [one_job], by_engine=True)
    assert verdicts(outcome) == {"a": None, "b": Why.QUOTA}


def test_engine_mode_limits_pending_jobs_at_the_engine() -> None:
    two = Account(1, "two", 1, most_pending=2)
    waits = held("x", gpus(1), running=False)
    outcome = passed([ask(name, gpus(1)) for name in "abc"], [], [two], [waits], by_engine=True)
    assert verdicts(outcome) == {"a": None, "b": Why.ENGINE_FULL, "c": Why.ENGINE_FULL}


# --- laws -----------------------------------------------------------------------------------------------

amounts = st.builds(
    lambda cpu, memory, count, kind: Amounts(cpu * 1000, memory * GiB, {kind: count} if count else {}),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 3),
    st.sampled_from(["", "A100", "P100"]),
)
requests = st.lists(
    st.tuples(
        amounts,
        st.integers(1, 3),
        st.integers(1, 3),
        st.sampled_from(["", "accept", "force"]),
        st.integers(1, 9),
    ),
    max_size=12,
)
machines = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 4), st.integers(0, 4)), max_size=4
)
Asked = list[tuple[Amounts, int, int, str, int]]


def _queue(asked: Asked) -> list[Waiting]:
    return [
        Waiting(str(i), quota, shape_of(Part(count, each)), priority, NOW - i, idle=idle)
        for i, (each, count, quota, idle, priority) in enumerate(asked)
    ]


@given(requests, machines, st.integers(0, 6))
def test_decisions_never_exceed_nodes_or_limits(
    asked: Asked, there: list[tuple[int, int, int, int]], limit: int
) -> None:
    queue = _queue(asked)
    nodes = [machine(f"n{i}", c * 1000, m * GiB, A100=a, P100=p) for i, (c, m, a, p) in enumerate(there)]
    tree: Mapping[int, Account] = {
        1: Account(1, "limited", 1, Limits(gpus=limit), parent_id=3),
        2: Account(2, "open", 2),
        3: Account(3, "above", 3, Limits(gpus=limit + 1)),
    }
    outcome = decide(Snapshot(NOW, tree, nodes, (), queue))
    assert sorted(decision.holder for decision in outcome.decisions) == sorted(each.holder for each in queue)
    by_holder = {decision.holder: decision for decision in outcome.decisions}
    for node in nodes:
        here = total(a for d in outcome.decisions for name, a in d.placement if name == node.name)
        assert here.cpu_milli <= node.has.cpu_milli
        assert here.memory_mib <= node.has.memory_mib
        assert all(count <= node.has.gpus.get(kind, 0) for kind, count in here.gpus.items())
    own = [r for r in queue if by_holder[r.holder].admitted and not by_holder[r.holder].borrowed]
    assert sum(r.shape.gpu_count for r in own if r.quota_id == 1) <= limit
    assert sum(r.shape.gpu_count for r in own if r.quota_id in {1, 3}) <= limit + 1
    for request in queue:
        decision = by_holder[request.holder]
        if decision.admitted:
            placed = total(here for _node, here in decision.placement)
            assert (placed.cpu_milli, placed.gpu_count) == (
                request.shape.amounts.cpu_milli,
                request.shape.gpu_count,
            )
            assert not decision.borrowed or request.idle


@given(requests, machines)
def test_second_pass_at_the_same_moment_starts_no_more_jobs(
    asked: Asked, there: list[tuple[int, int, int, int]]
) -> None:
    nodes = [machine(f"n{i}", c * 1000, m * GiB, A100=a, P100=p) for i, (c, m, a, p) in enumerate(there)]
    accounts = {i: Account(i, str(i), 1) for i in (1, 2, 3)}  # one workspace: shares change no order
    queue = _queue(asked)
    first = {each.holder: each for each in decide(Snapshot(NOW, accounts, nodes, (), queue)).decisions}
    holdings = [
        HeldResources(
            r.holder,
            r.quota_id,
            total(here for _node, here in first[r.holder].placement),
            first[r.holder].placement,
            borrowed=first[r.holder].borrowed,
        )
        for r in queue
        if first[r.holder].admitted
    ]
    rest = [r for r in queue if not first[r.holder].admitted]
    again = decide(Snapshot(NOW, accounts, nodes, holdings, rest))
    assert not any(each.admitted for each in again.decisions)
    assert again.taken_back == ()


# --- what an admin keeps from starting --------------------------------------------------------------------


def test_paused_cluster_starts_no_jobs_and_gives_the_reason() -> None:
    many = [ask("a", gpus(1)), ask("b", gpus(1), idle="accept")]
    outcome = passed(many, [machine(A100=4)], frozen="the switch burns")
    assert verdicts(outcome) == {"a": Why.FROZEN, "b": Why.FROZEN}
    assert {each.params["because"] for each in outcome.decisions} == {"the switch burns"}


def test_paused_cluster_in_engine_mode_hands_over_no_jobs() -> None:
    outcome = passed([ask("a", gpus(1))], [machine(A100=4)], frozen="", by_engine=True)
    assert verdicts(outcome) == {"a": Why.FROZEN}
    assert only(outcome).params == {"because": None}


def test_paused_cluster_still_empties_its_nodes() -> None:
    outcome = passed(
        [], [machine(A100=4)], holdings=[held("r", gpus(1))], frozen="x", emptied=frozenset({"n1"})
    )
    assert [each.holder for each in outcome.taken_back] == ["r"]


WINDOW = Window(NOW + 3600, NOW + 7200, lead_s=1800)


@pytest.mark.parametrize(
    ("later", "declared_s", "why"),
    [
        (0, 3600, None),  # over in the very second in which it begins
        (0, 3601, Why.MAINTENANCE),
        (0, None, None),  # nobody knows its end, but it is long before
        (1801, None, Why.MAINTENANCE),
        (3600, 1, Why.MAINTENANCE),
        (7199, 1, Why.MAINTENANCE),
        (7200, 100_000, None),
    ],
)
def test_job_able_to_run_into_a_maintenance_is_not_started(
    later: int, declared_s: int | None, why: Why | None
) -> None:
    account = {OPEN.id: OPEN}
    request = ask("a", gpus(1), declared_s=declared_s)
    now = Snapshot(NOW + later, account, [machine(A100=4)], (), [request], windows=[WINDOW])
    assert verdicts(decide(now)) == {"a": why}


def test_job_waiting_for_maintenance_end_does_not_delay_others() -> None:
    long, short = ask("a", gpus(4), declared_s=9000), ask("b", gpus(4), declared_s=60)
    outcome = passed([long, short], [machine(A100=4)], windows=[WINDOW])
    assert verdicts(outcome) == {"a": Why.MAINTENANCE, "b": None}
