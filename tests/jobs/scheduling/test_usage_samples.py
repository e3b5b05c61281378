"""Samples of a replica's use: of the whole run, in a bounded number."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobs.models.usage import Sample
from jobs.scheduling.usage_samples import MOST_SAMPLES, add_sample


@given(st.lists(st.tuples(st.floats(1, 3600), st.floats(0, 800), st.integers(0, 10**6)), max_size=300))
def test_bounded_samples_keep_begin_end_peak_and_mean(steps: list[tuple[float, float, int]]) -> None:
    at, samples, used, most = 0.0, [Sample(0.0, None, 0.0, 1)], 0.0, 1
    for span, cpu, memory in steps:
        at, used, most = at + span, used + cpu * span, max(most, memory)
        samples = add_sample(samples, Sample(at, None, cpu, memory))
    assert len(samples) <= MOST_SAMPLES
    assert samples[-1].at == at
    assert max(each.memory_mib or 0 for each in samples) == most
    spans = [after.at - before.at for before, after in pairwise(samples)]
    if at:
        mean = sum((each.cpu or 0) * span for each, span in zip(samples[1:], spans, strict=True)) / at
        assert abs(mean - used / at) <= 0.1 * max(1, len(steps) - MOST_SAMPLES)


def test_samples_are_joined_where_they_are_closest() -> None:
    samples = [Sample(60.0 * number, 10, 10.0, 5) for number in range(MOST_SAMPLES)]
    samples[100] = Sample(samples[99].at + 1, 90, 100.0, 7)
    found = add_sample(samples, Sample(samples[-1].at + 60, 10, 10.0, 5))
    assert len(found) == MOST_SAMPLES
    joined = next(each for each in found if each.at == samples[100].at)
    assert joined == Sample(samples[100].at, 11.3, 11.5, 7)


def test_unknown_gpu_use_stays_unknown_until_it_is_known() -> None:
    samples: list[Sample] = []
    for number in range(MOST_SAMPLES + 1):
        samples = add_sample(samples, Sample(float(number), None, 1.0))
    assert (samples[0], samples[1]) == (Sample(0.0, None, 1.0), Sample(2.0, None, 1.0))
