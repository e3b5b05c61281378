"""How often something may be done."""

from __future__ import annotations

from quotas.audit.bounds import MOST_SOURCES, Bounds


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def bounds(clock: Clock) -> Bounds:
    return Bounds(at_once=2, every_s=10, all_at_once=5, all_every_s=1, clock=clock)


def test_a_source_has_some_at_once_and_then_one_now_and_then() -> None:
    clock = Clock()
    bound = bounds(clock)
    assert [bound.admit("a") for _ in range(4)] == [0, 0, None, None]
    clock.now = 10
    assert [bound.admit("a"), bound.admit("a")] == [2, None], "and it tells how many were too much"


def test_sources_do_not_use_up_each_others() -> None:
    bound = bounds(Clock())
    assert [bound.admit(name) for name in "abab"] == [0, 0, 0, 0]


def test_all_sources_together_are_bounded_too() -> None:
    clock = Clock()
    bound = bounds(clock)
    admitted = [bound.admit(f"source {number}") for number in range(100)]
    assert admitted.count(0) == 5
    clock.now = 3
    assert [bound.admit(f"other {number}") for number in range(5)].count(0) == 3


def test_an_attacker_with_many_addresses_takes_no_memory() -> None:
    bound = bounds(Clock())
    for number in range(2 * MOST_SOURCES):
        bound.admit(str(number))
    assert len(bound._sources) == MOST_SOURCES
