"""Fixed ports of replicas that share one machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.backends import fixed_ports
from jobs.spec import Port, RoleSpec


def role(name: str, replicas: int, *ports: Port) -> RoleSpec:
    """A role that asks for ports."""
    return RoleSpec(name=name, command="true", replicas=replicas, ports=ports)


A, B = Port(label="a", begin_at=31600), Port(label="b", begin_at=31601)


def test_fixed_port_of_next_replica_moves_on_by_count() -> None:
    found = fixed_ports.assign([role("r", 3, Port(label="a", begin_at=31600, count=2))])
    assert [found[0, index]["a"] for index in range(3)] == [31600, 31602, 31604]


def test_fixed_ports_with_neighbouring_labels_stay_distinct() -> None:
    found = fixed_ports.assign([role("r", 2, A, B)])
    assert found == {(0, 0): {"a": 31600, "b": 31601}, (0, 1): {"a": 31602, "b": 31603}}
    assert fixed_ports.find_moved_label([role("r", 2, A, B)]) == "a"


def test_fixed_ports_go_to_first_replicas_of_all_roles_first() -> None:
    found = fixed_ports.assign([role("r", 2, A), role("s", 1, B)])
    assert found == {(0, 0): {"a": 31600}, (0, 1): {"a": 31602}, (1, 0): {"b": 31601}}


@pytest.mark.parametrize("roles", [[role("r", 2, A)], [role("r", 1, A, B)], [role("r", 9)]])
def test_find_moved_label_without_conflict_returns_empty_string(roles: list[RoleSpec]) -> None:
    assert fixed_ports.find_moved_label(roles) == ""


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.lists(st.integers(65_500, 65_535), min_size=1, max_size=3)),
        min_size=1,
        max_size=3,
    )
)
def test_fixed_ports_of_any_roles_are_distinct_and_in_range(wanted: list[tuple[int, list[int]]]) -> None:
    roles = [
        role(f"r{number}", count, *(Port(label=f"l{at}", begin_at=first) for at, first in enumerate(begins)))
        for number, (count, begins) in enumerate(wanted)
    ]
    found = [begin for begins in fixed_ports.assign(roles).values() for begin in begins.values()]
    assert len(set(found)) == len(found) == sum(count * len(begins) for count, begins in wanted)
    assert all(0 < begin <= fixed_ports.LAST for begin in found)
