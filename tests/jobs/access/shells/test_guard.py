"""Who is listened to before anybody is known."""

from __future__ import annotations

import pytest

from jobs.access.shells import guard
from jobs.access.shells.guard import MOST_STRANGERS, MOST_STRANGERS_EACH, Guard, Knock

HERE = "192.0.2.1"


class Door:
    """Somebody's connections to a guard, and which of them were cut."""

    def __init__(self, most: int = 1000, most_failures: int = 3) -> None:
        self.guard = Guard(most, most_failures)
        self.cut: list[str] = []

    def knock(self, address: str, name: str = "") -> Knock | None:
        return self.guard.admit(address, lambda: self.cut.append(name or address))

    def knocks(self, address: str, count: int) -> list[Knock]:
        found = [self.knock(address) for _ in range(count)]
        assert None not in found
        return [knock for knock in found if knock]


@pytest.fixture
def door() -> Door:
    return Door()


def test_an_address_that_fails_again_and_again_is_paused(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    for knock in door.knocks(HERE, 3):
        knock.has_offered = True
        knock.gone()
    assert door.knock(HERE) is None
    [other] = door.knocks("192.0.2.2", 1)
    other.known()
    other.gone()
    assert door.knock("192.0.2.2")
    monkeypatch.setattr(guard, "WINDOW_SECONDS", 0.0)
    assert door.knock(HERE)


def test_whoever_is_known_has_not_failed(door: Door) -> None:
    for _ in range(10):
        [knock] = door.knocks(HERE, 1)
        knock.known()
        knock.gone()
    assert door.knock(HERE)


def test_guard_counts_no_failure_where_no_key_was_offered(door: Door) -> None:
    for knock in door.knocks(HERE, 10):
        knock.gone()
    assert door.knock(HERE)


def test_one_address_has_so_many_strangers_and_those_who_are_known_do_not_count(door: Door) -> None:
    knocks = door.knocks(HERE, MOST_STRANGERS_EACH)
    assert door.knock(HERE) is None
    knocks[0].known()
    assert door.knock(HERE)


def test_who_holds_most_gives_the_oldest_place_to_whoever_comes_from_elsewhere(door: Door) -> None:
    crowd = [f"198.51.100.{number}" for number in range(MOST_STRANGERS // MOST_STRANGERS_EACH)]
    for address in crowd:
        for number in range(MOST_STRANGERS_EACH):
            assert door.knock(address, f"{address}/{number}")
    assert door.knock(HERE, "mine")
    assert door.cut == [f"{crowd[0]}/0"]
    fair = MOST_STRANGERS // (len(crowd) + 1)
    door.knocks(HERE, fair - 1)
    assert len(door.cut) == fair
    assert not {"mine", HERE} & set(door.cut)


def test_one_that_was_cut_is_counted_once_when_it_goes() -> None:
    door = Door(most_failures=1000)
    held = [door.knock(f"198.51.100.{number}") for number in range(MOST_STRANGERS)]
    [mine] = door.knocks(HERE, 1)
    for knock in (*held, mine):
        assert knock is not None
        knock.has_offered = True
        knock.gone()
    assert len(door.knocks(HERE, MOST_STRANGERS_EACH)) == MOST_STRANGERS_EACH
    assert door.guard._total == door.guard._open == MOST_STRANGERS_EACH


def test_so_many_are_open_in_all(door: Door) -> None:
    door = Door(most=2)
    for knock in door.knocks(HERE, 2):
        knock.known()
    assert door.knock("192.0.2.2") is None


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
def test_where_somebody_comes_from(address: str, origin: str) -> None:
    assert guard.origin_of(address) == origin


def test_a_whole_network_of_six_counts_as_one(door: Door) -> None:
    for number in range(MOST_STRANGERS_EACH):
        assert door.knock(f"2001:db8::{number:x}")
    assert door.knock("2001:db8::ffff") is None
    assert door.knock("2001:db8:0:1::1")
