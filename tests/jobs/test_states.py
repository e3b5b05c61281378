"""The tables and the verdict that supervisor, reconciler and pages share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.spec import CompletionPolicy, RoleSpec
from jobs.states import (
    ENDINGS,
    FINAL,
    LIVE,
    REPLICA_TERMINAL,
    TERMINAL,
    TRANSITIONS,
    Replica,
    ReplicaState,
    State,
    sources_of,
    verdict,
)

S, F, R, X = ReplicaState.SUCCEEDED, ReplicaState.FAILED, ReplicaState.RUNNING, ReplicaState.STOPPED


def role(name: str, replicas: int, failed: int | None = 1, succeeded: int | None = None) -> RoleSpec:
    policy = CompletionPolicy(min_failed=failed, min_succeeded=succeeded)
    return RoleSpec(name=name, replicas=replicas, command="x", completion=policy)


def seen(**states: list[ReplicaState]) -> list[Replica]:
    return [Replica(name, i, state) for name, each in states.items() for i, state in enumerate(each)]


@pytest.mark.parametrize(
    ("roles", "states", "expected", "trigger"),
    [
        ([role("w", 2)], {"w": [S, R]}, None, None),
        ([role("w", 2)], {"w": [S, S]}, State.SUCCEEDED, None),
        ([role("w", 2)], {"w": [F, R]}, State.FAILED, "w"),
        ([role("w", 2, failed=2)], {"w": [F, R]}, None, None),
        ([role("w", 1, failed=None)], {"w": [F]}, State.SUCCEEDED, None),
        ([role("w", 3, None, 1)], {"w": [S, R, R]}, State.SUCCEEDED, "w"),
        ([role("ps", 1), role("w", 2, 1, 2)], {"ps": [R], "w": [S, S]}, State.SUCCEEDED, "w"),
        ([role("ps", 1), role("w", 2, 1, 2)], {"ps": [F], "w": [S, S]}, State.FAILED, "ps"),
        ([role("chief", 1, 1, 1), role("w", 2, None)], {"chief": [S], "w": [R, F]}, State.SUCCEEDED, "chief"),
        ([role("w", 2, None)], {"w": [X, F]}, State.SUCCEEDED, None),
    ],
)
def test_verdict_follows_completion_counts_of_scm_page(
    roles: list[RoleSpec], states: dict[str, list[ReplicaState]], expected: State | None, trigger: str | None
) -> None:
    found = verdict(roles, seen(**states))
    assert (found.state, found.trigger) == (expected, trigger)


def test_verdict_of_success_counts_failed_replicas() -> None:
    found = verdict([role("w", 3, None)], seen(w=[S, F, F]))
    assert (found.state, found.failed, found.total) == (State.SUCCEEDED, 2, 3)


policies = st.one_of(st.none(), st.integers(1, 4))
replica_states = st.sampled_from(list(ReplicaState))


@given(
    st.lists(
        st.tuples(policies, policies, st.lists(replica_states, min_size=1, max_size=4)),
        min_size=1,
        max_size=3,
    )
)
def test_verdict_stays_as_more_replicas_end(
    drawn: list[tuple[int | None, int | None, list[ReplicaState]]],
) -> None:
    roles = [role(f"r{i}", len(states), failed, ok) for i, (failed, ok, states) in enumerate(drawn)]
    now = [Replica(f"r{i}", j, s) for i, (_f, _o, states) in enumerate(drawn) for j, s in enumerate(states)]
    first = verdict(roles, now)
    ended = [r if r.state in REPLICA_TERMINAL else Replica(r.role, r.index, S) for r in now]
    last = verdict(roles, ended)
    assert last.state is not None, "when every replica has ended the job has"
    if first.state is State.FAILED:
        assert last.state is State.FAILED


def test_final_states_have_no_transitions() -> None:
    assert all(not TRANSITIONS[state] for state in FINAL)
    assert {State.LOST} == TERMINAL - FINAL


def test_live_states_can_reach_every_end_and_none_skips_submitting() -> None:
    for state in LIVE:
        assert TRANSITIONS[state] >= TERMINAL
    assert sources_of(State.SUBMITTING) == {State.QUEUED}
    assert State.RUNNING not in TRANSITIONS[State.QUEUED]


def test_endings_lead_only_to_terminal_states() -> None:
    assert {ending.state for ending in ENDINGS.values()} <= TERMINAL
