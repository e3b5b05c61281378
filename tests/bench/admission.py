"""One pass of admission, at three lengths of the queue: CPU time, and how it grows."""

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

LENGTHS: Final = (1000, 3000, 10_000)
TARGET: Final = {10_000: "≤ 1 s"}


def measure() -> list[Figure]:
    """Each length in a console of its own, on SQLite; beside it the first one times how much longer it is."""
    measured = {length: _measured(length) for length in LENGTHS}
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


def _measured(length: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="jc-") as home:
        keys.ensure(Path(home))
        run = subprocess.run(
            [sys.executable, "-m", "tests.bench.queue", str(length)],
            cwd=CHECKOUT,
            env={
                **os.environ,
                "CONSOLE_HOME": home,
                "DATABASE_URL": "",
                "REDIS_URL": "redis://127.0.0.1:1/0",
            },
            capture_output=True,
            text=True,
            check=True,
        )
    said: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return said
