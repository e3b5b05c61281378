"""How often something may be done."""

from __future__ import annotations

from quotas.audit.bounds import MOST_SOURCES, Bounds


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def bounds(clock: Clock) -> Bounds:
    return Bounds(at_once=2, every_s=10, all_at_once=5, all_every_s=1, clock=clock)


def test_source_is_admitted_in_a_burst_then_at_a_slow_rate() -> None:
    clock = Clock()
    bound = bounds(clock)
    assert [bound.admit("a") for _ in range(4)] == [0, 0, None, None]
    clock.now = 10
    assert [bound.admit("a"), bound.admit("a")] == [2, None], "and it tells how many were too much"


def test_sources_have_separate_limits() -> None:
    bound = bounds(Clock())
    assert [bound.admit(name) for name in "abab"] == [0, 0, 0, 0]


def test_sources_together_have_a_common_limit() -> None:
    clock = Clock()
    bound = bounds(clock)
    admitted = [bound.admit(f"source {number}") for number in range(100)]
    assert admitted.count(0) == 5
    clock.now = 3
    assert [bound.admit(f"other {number}") for number in range(5)].count(0) == 3


def test_many_sources_use_bounded_memory() -> None:
    bound = bounds(Clock())
    for number in range(2 * MOST_SOURCES):
        bound.admit(str(number))
    assert len(bound._sources) == MOST_SOURCES
