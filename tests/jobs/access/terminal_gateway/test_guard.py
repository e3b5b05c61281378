"""Who is listened to before anybody is known."""

from __future__ import annotations

import pytest

from jobs.access.terminal_gateway import guard
from jobs.access.terminal_gateway.guard import (
    MOST_UNAUTHENTICATED,
    MOST_UNAUTHENTICATED_EACH,
    ConnectionGuard,
    PendingConnection,
)

HERE = "192.0.2.1"


class Gate:
    """Somebody's connections to a guard, and which of them were cut."""

    def __init__(self, most: int = 1000, most_failures: int = 3) -> None:
        self.guard = ConnectionGuard(most, most_failures)
        self.cut: list[str] = []

    def connection(self, address: str, name: str = "") -> PendingConnection | None:
        return self.guard.admit(address, lambda: self.cut.append(name or address))

    def connections(self, address: str, count: int) -> list[PendingConnection]:
        found = [self.connection(address) for _ in range(count)]
        assert None not in found
        return [connection for connection in found if connection]


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_guard_pauses_an_address_after_repeated_failures(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    for connection in gate.connections(HERE, 3):
        connection.has_offered = True
        connection.close()
    assert gate.connection(HERE) is None
    [other] = gate.connections("192.0.2.2", 1)
    other.authenticate()
    other.close()
    assert gate.connection("192.0.2.2")
    monkeypatch.setattr(guard, "WINDOW_SECONDS", 0.0)
    assert gate.connection(HERE)


def test_guard_counts_no_failure_for_authenticated_connections(gate: Gate) -> None:
    for _ in range(10):
        [connection] = gate.connections(HERE, 1)
        connection.authenticate()
        connection.close()
    assert gate.connection(HERE)


def test_guard_counts_no_failure_without_an_offered_key(gate: Gate) -> None:
    for connection in gate.connections(HERE, 10):
        connection.close()
    assert gate.connection(HERE)


def test_guard_limits_unauthenticated_connections_per_address(gate: Gate) -> None:
    connections = gate.connections(HERE, MOST_UNAUTHENTICATED_EACH)
    assert gate.connection(HERE) is None
    connections[0].authenticate()
    assert gate.connection(HERE)


def test_guard_cuts_oldest_of_the_busiest_address_for_a_newcomer(gate: Gate) -> None:
    crowd = [f"198.51.100.{number}" for number in range(MOST_UNAUTHENTICATED // MOST_UNAUTHENTICATED_EACH)]
    for address in crowd:
        for number in range(MOST_UNAUTHENTICATED_EACH):
            assert gate.connection(address, f"{address}/{number}")
    assert gate.connection(HERE, "mine")
    assert gate.cut == [f"{crowd[0]}/0"]
    fair = MOST_UNAUTHENTICATED // (len(crowd) + 1)
    gate.connections(HERE, fair - 1)
    assert len(gate.cut) == fair
    assert not {"mine", HERE} & set(gate.cut)


def test_guard_counts_a_cut_connection_only_once() -> None:
    gate = Gate(most_failures=1000)
    held = [gate.connection(f"198.51.100.{number}") for number in range(MOST_UNAUTHENTICATED)]
    [mine] = gate.connections(HERE, 1)
    for connection in (*held, mine):
        assert connection is not None
        connection.has_offered = True
        connection.close()
    assert len(gate.connections(HERE, MOST_UNAUTHENTICATED_EACH)) == MOST_UNAUTHENTICATED_EACH
    assert gate.guard._unauthenticated_total == gate.guard._open == MOST_UNAUTHENTICATED_EACH


def test_guard_limits_open_connections_in_total(gate: Gate) -> None:
    gate = Gate(most=2)
    for connection in gate.connections(HERE, 2):
        connection.authenticate()
    assert gate.connection("192.0.2.2") is None


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_guard_finds_the_origin_of_an_address(address: str, origin: str) -> None:
    assert guard.origin_of(address) == origin


def test_guard_counts_an_ipv6_network_as_one_origin(gate: Gate) -> None:
    for number in range(MOST_UNAUTHENTICATED_EACH):
        assert gate.connection(f"2001:db8::{number:x}")
    assert gate.connection("2001:db8::ffff") is None
    assert gate.connection("2001:db8:0:1::1")
