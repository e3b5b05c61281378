"""Elastic requests: they start with the replicas for which there is room, and grow when there is more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotas.admission import (
    Account,
    Decision,
    HeldResources,
    Limits,
    Machine,
    Outcome,
    ResourceShape,
    Snapshot,
    Waiting,
    Why,
    decide,
    shape_of,
)
from quotas.admission.decisions import GROWTH
from quotas.admission.snapshot import Shapes
from quotas.amounts import Amounts, Part, total

NOW = 1_000_000.0
OPEN = Account(1, "open", 1)
EACH = Amounts(1000, 1024, {"A100": 1})


def machine(gpus: int, name: str = "n1") -> Machine:
    return Machine(name, Amounts(64_000, 65_536, {"A100": gpus}))


def elastic(count: int = 4, least: int = 2, holder: str = "elastic", **terms: Any) -> Waiting:
    return Waiting(holder, 1, shape_of(Part(count, EACH, least=least)), since=NOW - 100, **terms)


def rigid(count: int, holder: str = "rigid", **terms: Any) -> Waiting:
    return Waiting(holder, 1, shape_of(Part(count, EACH)), since=NOW - 50, **terms)


def held(count: int, holder: str = "other", node: str = "n1", **facts: Any) -> HeldResources:
    amounts = EACH.times(count)
    return HeldResources(holder, 1, amounts, ((node, amounts),), since=NOW - 500, **facts)


def short(has: int, wants: int = 4, least: int = 2, **facts: Any) -> HeldResources:
    shape = shape_of(Part(wants, EACH, least=least))
    return held(has, "short", shape=shape, counts=(has,), **facts)


def passed(
    *waiting: Waiting,
    gpus: int = 8,
    holdings: tuple[HeldResources, ...] = (),
    account: Account = OPEN,
    **more: Any,
) -> Outcome:
    return decide(Snapshot(NOW, {1: account}, [machine(gpus)], holdings, waiting, **more))


def of(outcome: Outcome, holder: str = "elastic") -> Decision:
    return next(each for each in outcome.decisions if each.holder == holder)


def test_elastic_request_starts_with_all_replicas_where_they_fit() -> None:
    decision = of(passed(elastic()))
    assert decision.admitted
    assert decision.counts is None
    assert decision.gpus == 4


def test_elastic_request_starts_with_the_most_replicas_that_fit() -> None:
    decision = of(passed(elastic(), gpus=3))
    assert decision.admitted
    assert decision.counts == (3,)
    assert total(here for _node, here in decision.placement) == EACH.times(3)


def test_elastic_request_waits_for_its_minimum() -> None:
    decision = of(passed(elastic(), gpus=4, holdings=(held(3),)))
    assert decision.why is Why.CAPACITY
    assert decision.params["wanted"] == 2
    assert decision.params["fits_now"] == 1


def test_elastic_request_above_the_whole_cluster_starts_and_below_it_never_does() -> None:
    assert of(passed(elastic(), gpus=2)).counts == (2,)
    assert of(passed(elastic(), gpus=1)).why is Why.EXCEEDS_CLUSTER


def test_elastic_request_starts_within_what_is_left_of_its_quota() -> None:
    limited = replace(OPEN, limits=Limits(gpus=5))
    assert of(passed(elastic(), holdings=(held(2),), account=limited)).counts == (3,)


def test_elastic_request_takes_nothing_of_what_waits_ahead() -> None:
    outcome = passed(rigid(6, priority=9), elastic(), gpus=8, holdings=(held(5),))
    assert of(outcome, "rigid").why is Why.CAPACITY
    assert not of(outcome).admitted


def test_borrowing_elastic_request_starts_with_what_is_idle() -> None:
    limited = replace(OPEN, limits=Limits(gpus=1))
    decision = of(passed(elastic(idle="accept"), gpus=3, account=limited))
    assert (decision.counts, decision.borrowed) == ((3,), True)


def test_elastic_parts_shrink_from_the_last_and_keep_the_others() -> None:
    master, worker = Part(1, EACH), Part(3, EACH, least=1)
    request = Waiting("elastic", 1, shape_of(master, worker), since=NOW)
    assert of(passed(request, gpus=3)).counts == (1, 2)


def test_elastic_request_is_whole_where_the_engine_schedules() -> None:
    decision = of(passed(elastic(), gpus=2, by_engine=True))
    assert decision.admitted
    assert decision.counts is None


def test_short_holder_is_restarted_when_there_is_room_for_another_replica() -> None:
    (taken,) = passed(holdings=(short(2),), gpus=3, growing=frozenset({"short"})).taken_back
    assert (taken.holder, taken.cause) == ("short", GROWTH)


@pytest.mark.parametrize(
    ("facts", "more"),
    [
        ({}, {"gpus": 2}),
        ({}, {"growing": frozenset()}),
        ({"coming": True}, {}),
        ({}, {"account": replace(OPEN, limits=Limits(gpus=2))}),
        ({}, {"account": replace(OPEN, limits=Limits(jobs=1, gpus=2))}),
    ],
    ids=["no-room", "not-now", "ends-anyhow", "quota-full", "quota-full-of-jobs"],
)
def test_short_holder_goes_on(facts: dict[str, Any], more: dict[str, Any]) -> None:
    given = {"gpus": 8, "growing": frozenset({"short"}), **more}
    assert passed(holdings=(short(2, **facts),), **given).taken_back == ()


def test_short_holder_grows_although_its_quota_has_as_many_jobs_as_it_takes() -> None:
    account = replace(OPEN, limits=Limits(jobs=1))
    outcome = passed(holdings=(short(2),), account=account, growing=frozenset({"short"}))
    assert [each.holder for each in outcome.taken_back] == ["short"]


def test_short_holder_goes_on_while_somebody_waits_for_room() -> None:
    outcome = passed(rigid(7), holdings=(short(2),), gpus=8, growing=frozenset({"short"}))
    assert of(outcome, "rigid").why is Why.CAPACITY
    assert outcome.taken_back == ()


def test_room_of_one_replica_restarts_one_holder() -> None:
    holdings = (short(2), replace(short(2), holder="second"))
    outcome = passed(holdings=holdings, gpus=5, growing=frozenset({"short", "second"}))
    assert len(outcome.taken_back) == 1


@given(wants=st.integers(1, 40), least=st.integers(1, 40), gpus=st.integers(0, 40), taken=st.integers(0, 40))
def test_elastic_request_starts_with_what_is_free_between_its_bounds(
    wants: int, least: int, gpus: int, taken: int
) -> None:
    least, taken = min(least, wants), min(taken, gpus)
    holdings = (held(taken),) if taken else ()
    decision = of(passed(elastic(wants, least), gpus=gpus, holdings=holdings))
    free = gpus - taken
    assert decision.admitted is (free >= least)
    if decision.admitted:
        assert decision.gpus == min(wants, free)
        assert (decision.counts is None) is (free >= wants)


def test_minimum_survives_storage() -> None:
    part = Part(4, EACH, only=("n1",), least=2)
    assert Part.from_json(part.to_json()) == part
    shapes = Shapes()
    rows = [Part(4, EACH, least=least).to_json() for least in (2, 3)]
    assert [shape.spare for shape in map(shapes.of, ([row] for row in rows))] == [2, 1]
    assert shapes.of([rows[0]]) is shapes.of([rows[0]])


def test_smaller_shapes_are_made_once() -> None:
    shape = ResourceShape((Part(4, EACH, least=2),))
    assert shape.without(1) is shape.without(1)
    assert shape.without(0) is shape
