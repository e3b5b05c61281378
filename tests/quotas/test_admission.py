"""Who starts next, and why the others wait."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from quotas.admission import Ceiling, Decision, Machine, Waiting, Why, decide, hand_over
from quotas.amounts import Amounts, total
from quotas.ledger import Part

OPEN = Ceiling("open", None, None, None, {}, None)
GiB = 1024


def gpus(count: int, kind: str = "A100") -> Amounts:
    return Amounts(1000, GiB, {kind: count})


def machine(name: str = "n1", cpu: int = 16_000, memory: int = 64 * GiB, **types: int) -> Machine:
    has = Amounts(cpu, memory, types)
    return Machine(name, has, has)


def ask(holder: str, each: Amounts, count: int = 1, quota: int = 1) -> Waiting:
    return Waiting(holder, quota, [Part(count, each)])


def verdicts(decisions: Sequence[Decision]) -> dict[str, Why | None]:
    return {decision.holder: decision.why for decision in decisions}


def test_what_fits_starts() -> None:
    assert verdicts(decide([ask("a", gpus(2))], {1: OPEN}, [machine(A100=4)])) == {"a": None}


def test_a_gang_starts_whole_or_not_at_all() -> None:
    (decision,) = decide([ask("a", gpus(3), count=3)], {1: OPEN}, [machine(A100=4), machine("n2", A100=4)])
    assert decision.why is Why.EXCEEDS_CLUSTER
    (decision,) = decide([ask("a", gpus(3), count=2)], {1: OPEN}, [machine(A100=4), machine("n2", A100=4)])
    assert [node for node, _here in decision.placement] == ["n1", "n2"]


def test_a_gpu_type_nobody_has_is_told_with_the_types_there_are() -> None:
    (decision,) = decide([ask("a", gpus(1, "TITANX"))], {1: OPEN}, [machine(A100=1, P100=1)])
    assert decision.why is Why.NO_SUCH_GPU
    assert decision.params == {"gpu_type": "TITANX", "types": "A100, P100"}


def test_any_type_will_do_when_none_is_named() -> None:
    (decision,) = decide([ask("a", gpus(2, ""))], {1: OPEN}, [machine(A100=1, P100=1)])
    assert decision.placement[0][1].gpus == {"A100": 1, "P100": 1}


def test_an_earlier_gang_is_not_delayed_by_a_later_small_job() -> None:
    busy = Machine("n1", Amounts(16_000, 64 * GiB, {"A100": 4}), Amounts(16_000, 64 * GiB, {"A100": 2}))
    decisions = verdicts(decide([ask("big", gpus(4)), ask("small", gpus(1))], {1: OPEN}, [busy]))
    assert decisions == {"big": Why.CAPACITY, "small": Why.TURN}


def test_a_cpu_job_passes_a_gang_that_waits_for_gpus() -> None:
    busy = Machine("n1", Amounts(16_000, 64 * GiB, {"A100": 4}), Amounts(16_000, 64 * GiB, {"A100": 2}))
    decisions = verdicts(decide([ask("big", gpus(4)), ask("cpu", Amounts(1000, GiB))], {1: OPEN}, [busy]))
    assert decisions == {"big": Why.CAPACITY, "cpu": None}


def test_what_can_never_start_holds_nobody_up() -> None:
    decisions = verdicts(decide([ask("never", gpus(9)), ask("a", gpus(4))], {1: OPEN}, [machine(A100=4)]))
    assert decisions == {"never": Why.EXCEEDS_CLUSTER, "a": None}


def test_a_full_quota_holds_up_its_own_people_only() -> None:
    small = Ceiling("small", None, None, 2, {}, None, held=gpus(2), holders=1)
    decisions = decide(
        [ask("mine", gpus(1)), ask("theirs", gpus(1), quota=2)], {1: small, 2: OPEN}, [machine(A100=4)]
    )
    assert verdicts(decisions) == {"mine": Why.QUOTA, "theirs": None}
    assert decisions[0].params == {"quota": "small", "kind": "gpu", "wanted": 1, "used": 2, "limit": 2}


def test_more_than_the_whole_quota_is_told_apart_from_waiting() -> None:
    small = Ceiling("small", None, None, None, {"A100": 1}, None)
    (decision,) = decide([ask("a", gpus(2))], {1: small}, [machine(A100=4)])
    assert decision.why is Why.EXCEEDS_QUOTA


def test_a_waiting_gang_hears_how_many_replicas_would_start_now() -> None:
    busy = Machine("n1", Amounts(16_000, 64 * GiB, {"A100": 8}), Amounts(16_000, 64 * GiB, {"A100": 5}))
    (decision,) = decide([ask("a", gpus(1), count=8)], {1: OPEN}, [busy])
    assert (decision.why, decision.params["fits_now"], decision.params["free"]) == (Why.CAPACITY, 5, 5)


def test_no_nodes_yet_is_not_a_verdict_about_the_job() -> None:
    assert verdicts(decide([ask("a", gpus(1))], {1: OPEN}, [])) == {"a": Why.NO_NODES}


def test_engine_mode_checks_ceilings_and_hands_over() -> None:
    one_job = Ceiling("one", None, None, None, {}, 1)
    assert verdicts(hand_over([ask("a", gpus(99)), ask("b", gpus(1))], {1: one_job})) == {
        "a": None,
        "b": Why.QUOTA,
    }


amounts = st.builds(
    lambda cpu, memory, count, kind: Amounts(cpu * 1000, memory * GiB, {kind: count} if count else {}),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 3),
    st.sampled_from(["", "A100", "P100"]),
)
requests = st.lists(st.tuples(amounts, st.integers(1, 3), st.integers(1, 2)), max_size=12)
machines = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 4), st.integers(0, 4)), max_size=4
)


@given(requests, machines, st.integers(0, 6))
def test_no_decision_promises_more_than_there_is(
    asked: list[tuple[Amounts, int, int]], there: list[tuple[int, int, int, int]], ceiling: int
) -> None:
    queue = [Waiting(str(i), quota, [Part(count, each)]) for i, (each, count, quota) in enumerate(asked)]
    nodes = [machine(f"n{i}", c * 1000, m * GiB, A100=a, P100=p) for i, (c, m, a, p) in enumerate(there)]
    limited = Ceiling("limited", None, None, ceiling, {}, None)
    decisions = decide(queue, {1: limited, 2: OPEN}, nodes)
    assert [decision.holder for decision in decisions] == [request.holder for request in queue]
    for node in nodes:
        here = total(a for d in decisions for name, a in d.placement if name == node.name)
        assert here.cpu_milli <= node.has.cpu_milli
        assert here.memory_mib <= node.has.memory_mib
        assert all(count <= node.has.gpus.get(kind, 0) for kind, count in here.gpus.items())
    admitted = [r for r, d in zip(queue, decisions, strict=True) if d.admitted]
    assert sum(r.amounts.gpu_count for r in admitted if r.quota_id == 1) <= ceiling
    for request, decision in zip(queue, decisions, strict=True):
        if decision.admitted:
            placed = total(here for _node, here in decision.placement)
            assert (placed.cpu_milli, placed.gpu_count) == (
                request.amounts.cpu_milli,
                request.amounts.gpu_count,
            )
