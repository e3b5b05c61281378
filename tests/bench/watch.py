"""Fault detection and metrics of 1,000 replicas: the share of one core that their passes take."""

from __future__ import annotations

from typing import Final

from tests.bench.figures import Figure
from tests.bench.programs import run_alone

REPLICAS: Final = 1000
TARGET: Final = "≤ 3 %"


def measure(replicas: int = REPLICAS, every_s: float = 15, measured_s: float = 60) -> list[Figure]:
    """In consoles of their own, on SQLite.

    `every_s` is CONSOLE_FAULT_SECONDS, `measured_s` CONSOLE_MEASURE_SECONDS.
    """
    watched, measured = (run_alone(f"tests.bench.{name}", str(replicas)) for name in ("watched", "measured"))
    shares = {
        "watched for hangs": watched["hangs_s"] / every_s,
        "watched for hangs and stragglers": watched["all_s"] / every_s,
        "measured, all of them busy": measured["pass_s"] / measured_s,
    }
    return [
        Figure(f"{replicas:,} replicas {what}, of one core", 100 * share, "%", target=TARGET)
        for what, share in shares.items()
    ]
