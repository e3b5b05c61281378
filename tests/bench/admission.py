"""One pass of admission, at three lengths of the queue: CPU time, and how it grows."""

from __future__ import annotations

from typing import Final

from tests.bench.figures import Figure
from tests.bench.programs import run_alone

LENGTHS: Final = (1000, 3000, 10_000)
TARGET: Final = {10_000: "≤ 1 s"}


def measure() -> list[Figure]:
    """Each length in a console of its own, on SQLite; beside it the first one times how much longer it is."""
    measured = {length: run_alone("tests.bench.queue", str(length)) for length in LENGTHS}
    figures = []
    for length, said in measured.items():
        longer = length / LENGTHS[0]
        beside = "" if longer == 1 else f"{longer:g} times the first"
        for name, what in (("pass_s", "a whole pass"), ("decision_s", "its decision alone")):
            baseline = measured[LENGTHS[0]][name] * longer if beside else None
            title = f"{what}, {length:,} jobs waiting in 200 quotas, CPU"
            target = TARGET.get(length, "") if name == "pass_s" else ""
            figures.append(Figure(title, said[name], "s", baseline, beside, target))
    return figures
