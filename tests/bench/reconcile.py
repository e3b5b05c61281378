"""Observing many live jobs: CPU of the console, the engine answering at once, beside a tenth of them."""

from __future__ import annotations

from typing import Final

from tests.bench.figures import Figure
from tests.bench.programs import run_alone

JOBS: Final = 10_000
FEWER: Final = 10
WHAT: Final = {
    "same_s": ("that change nothing", "≤ 2 s"),
    "some_s": ("of which a hundredth ends", ""),
}


def measure() -> list[Figure]:
    """Each number in a console of its own, on SQLite."""
    many, few = (run_alone("tests.bench.observed", str(jobs)) for jobs in (JOBS, JOBS // FEWER))
    return [
        Figure(
            f"a look at {JOBS:,} live jobs {what}, CPU",
            many[name],
            "s",
            few[name] * FEWER,
            f"{FEWER} times {JOBS // FEWER:,}",
            target,
        )
        for name, (what, target) in WHAT.items()
    ]
