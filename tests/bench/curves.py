"""How fast training metrics are read from output: CPU time of one core."""

from __future__ import annotations

from tests.bench.figures import Figure
from tests.bench.programs import run_alone


def measure() -> list[Figure]:
    """A log of points, parsed and merged into series; and a log without any."""
    measured = run_alone("tests.bench.points")
    return [
        Figure("1,000,000 points of output, parsed and down-sampled, CPU", measured["points_s"], "s"),
        Figure("output without metrics, looked through, CPU", measured["text_mb_s"], "MB/s"),
    ]
