"""Fault detection and metrics of 1,000 replicas: the share of one core that their passes take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from console.configuration import keys
from console.home import CHECKOUT
from tests.bench.figures import Figure

REPLICAS: Final = 1000
TARGET: Final = "≤ 3 %"


def measure(replicas: int = REPLICAS, every_s: float = 15, measured_s: float = 60) -> list[Figure]:
    """In consoles of their own, on SQLite.

    `every_s` is CONSOLE_FAULT_SECONDS, `measured_s` CONSOLE_MEASURE_SECONDS.
    """
    watched, measured = _run("tests.bench.watched", replicas), _run("tests.bench.measured", replicas)
    shares = {
        "watched for hangs": watched["hangs_s"] / every_s,
        "watched for hangs and stragglers": watched["all_s"] / every_s,
        "measured, all of them busy": measured["pass_s"] / measured_s,
    }
    return [
        Figure(f"{replicas:,} replicas {what}, of one core", 100 * share, "%", target=TARGET)
        for what, share in shares.items()
    ]


def _run(module: str, replicas: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="jc-") as home:
        keys.ensure(Path(home))
        ours = {"CONSOLE_HOME": home, "DATABASE_URL": "", "REDIS_URL": "redis://127.0.0.1:1/0"}
        run = subprocess.run(
            [sys.executable, "-m", module, str(replicas)],
            cwd=CHECKOUT,
            env={**os.environ, **ours},
            capture_output=True,
            text=True,
            check=True,
        )
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found
