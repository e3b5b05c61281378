"""When it starts: said only where the past bears it out."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from quotas.admission.forecast import HAS_TO_HOLD, LEAST_KNOWN, forecast


def test_forecast_from_steady_past_gives_a_range() -> None:
    chance = random.Random(1)
    waits = [chance.uniform(60, 120) for _each in range(100)]
    found = forecast(waits, 30)
    assert found.held >= HAS_TO_HOLD
    assert found.least_s is not None
    assert found.most_s is not None
    assert 30 <= found.least_s <= found.most_s <= 90


def test_forecast_from_changing_past_gives_none() -> None:
    growing = [10.0 * 1.2**each for each in range(60)]
    found = forecast(growing, 0)
    assert (found.because, found.least_s) == ("unsteady", None)
    assert found.held < HAS_TO_HOLD


def test_forecast_from_short_past_gives_none() -> None:
    assert forecast([60.0] * (2 * LEAST_KNOWN - 1), 0).because == "few"


def test_forecast_for_unusually_long_wait_gives_longer() -> None:
    assert forecast([60.0 + each for each in range(20)] * 5, 79.5).because == "longer"


@given(st.lists(st.floats(0, 1e6), max_size=120), st.floats(0, 1e6))
def test_forecast_gives_a_range_only_if_the_replay_held(waits: list[float], waited: float) -> None:
    found = forecast(waits, waited)
    if found.because:
        assert found.least_s is None
        return
    assert found.held >= HAS_TO_HOLD
    assert found.least_s is not None
    assert found.most_s is not None
    assert 0 <= found.least_s <= found.most_s
