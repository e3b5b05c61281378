"""How long a regular expression takes through a log, beside `grep -E` on the same file."""

from __future__ import annotations

from tests.bench.figures import Figure
from tests.bench.programs import run_alone


def measure() -> list[Figure]:
    """1 GB of numbered lines, of which the last matches."""
    measured = run_alone("tests.bench.searched")
    return [
        Figure(
            "regular expression over 1 GB of log",
            measured["search_s"],
            "s",
            measured["grep_s"],
            "grep -E",
            target="≤ 2.5×",
        )
    ]
