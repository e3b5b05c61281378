"""Ranks that are slower than the others, by the step times in their own output."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

FACTOR: Final = 1.5
STEPS: Final = 10
"""A rank is a straggler whose last `STEPS` steps each took longer than `FACTOR` times the median of all."""

LEAST_RANKS: Final = 3

MOST_BYTES: Final = 16 * 1024
"""So much of the end of new output is read for steps."""

_STEP: Final = re.compile(
    rb"\b(?:global_)?(?:step|iter|iteration|batch)\b[^\w\n]{0,12}\d|\[\s*\d+/\d+\]", re.IGNORECASE
)
_TIME: Final = re.compile(
    rb"\b(?:(?:(?:step|batch|iter)[_ ])?time|step_avg|elapsed time per iteration)(?P<ms> \(ms\))?"
    rb"[^\w\n.-]{1,3}(?P<value>\d{1,9}(?:\.\d{1,9})?) ?(?P<unit>ms|s)?(?![\w.:])"
    rb"|(?<![\w.])(?P<rate>\d{1,9}(?:\.\d{1,9})?) ?s/(?:it|iter|step)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Straggler:
    """A slow log by its key, its median step time and that of all ranks, in seconds, and their number."""

    key: str
    step_s: float
    median_s: float
    ranks: int


def find_times(data: bytes) -> list[float]:
    """Return the newest step times in seconds, as in `step=9 time=0.3`, `iter 7 time: 310 ms` or `2.1s/it`.

    Lines are read from the end, and no more than needed: a job may write thousands of steps meanwhile.
    """
    found: list[float] = []
    for line in reversed(data[-MOST_BYTES:].splitlines()):
        seconds = _find_time(line)
        if seconds is not None:
            found.append(seconds)
            if len(found) == STEPS:
                break
    return found[::-1]


def _find_time(line: bytes) -> float | None:
    found = _TIME.search(line) if _STEP.search(line) or b"s/it" in line else None
    if found is None:
        return None
    if found["rate"]:
        return float(found["rate"])
    is_ms = found["ms"] or (found["unit"] or b"").lower() == b"ms"
    return float(found["value"]) / (1000 if is_ms else 1)


def add(before: Mapping[str, Any] | None, data: bytes) -> dict[str, Any]:
    """Return what is kept of a log: its newest step times, and whether it is known to be slow."""
    kept = dict(before or {"times": [], "slow": False})
    kept["times"] = [*kept["times"], *(round(each, 4) for each in find_times(data))][-STEPS:]
    return kept


def find_new(steps: Mapping[str, Mapping[str, Any]]) -> tuple[list[Straggler], dict[str, dict[str, Any]]]:
    """Return the stragglers that were none before, and what is kept with them marked."""
    full = {key: each["times"] for key, each in steps.items() if len(each["times"]) == STEPS}
    marked = {key: dict(each) for key, each in steps.items()}
    if len(full) < LEAST_RANKS:
        return [], marked
    middle = median(median(times) for times in full.values())
    found = []
    for key, times in full.items():
        is_slow = _is_slow(times, middle)
        if is_slow and not marked[key]["slow"]:
            found.append(Straggler(key, round(median(times), 3), round(middle, 3), len(full)))
        marked[key]["slow"] = is_slow
    return found, marked


def _is_slow(times: Sequence[float], middle: float) -> bool:
    return middle > 0 and all(each > FACTOR * middle for each in times)
