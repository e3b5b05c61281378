"""Samples of the use of a replica: all of its run, in a bounded number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jobs.models.usage import Sample

MOST_SAMPLES: Final = 240
RATE_DIGITS: Final = 3
"""Of MiB a second: 1 KiB."""


def add_sample(samples: Sequence[Sample], new: Sample) -> list[Sample]:
    """Return the samples and a new one; where these are too many, the two that span the least time are one.

    The first is where the run begins, and stays.
    """
    found = [*samples, new]
    while len(found) > MOST_SAMPLES:
        at = min(range(1, len(found) - 1), key=lambda index: found[index + 1].at - found[index - 1].at)
        found[at : at + 2] = [_join(found[at], found[at + 1], found[at - 1].at)]
    return found


def _join(first: Sample, second: Sample, begin: float) -> Sample:
    """Return one sample for two: their means by time, and the most memory."""
    before, after = first.at - begin, second.at - first.at
    memory = [each.memory_mib for each in (first, second) if each.memory_mib is not None]

    def join(one: float | None, other: float | None, digits: int) -> float | None:
        if one is None or other is None:
            return other if one is None else one
        return _mean(one, other, before, after, digits)

    return Sample(
        at=second.at,
        gpu=join(first.gpu, second.gpu, 1),
        cpu=join(first.cpu, second.cpu, 1),
        memory_mib=max(memory, default=None),
        disk_read=join(first.disk_read, second.disk_read, RATE_DIGITS),
        disk_written=join(first.disk_written, second.disk_written, RATE_DIGITS),
        received=join(first.received, second.received, RATE_DIGITS),
        sent=join(first.sent, second.sent, RATE_DIGITS),
    )


def _mean(first: float, second: float, before: float, after: float, digits: int) -> float:
    whole = before + after
    return round((first * before + second * after) / whole, digits) if whole > 0 else second
