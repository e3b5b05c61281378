"""Observing many live jobs: CPU of the console, the engine answering at once, beside a tenth of them."""

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

JOBS: Final = 10_000
FEWER: Final = 10
WHAT: Final = {
    "same_s": ("that change nothing", "≤ 2 s"),
    "some_s": ("of which a hundredth ends", ""),
}


def measure() -> list[Figure]:
    """Each number in a console of its own, on SQLite."""
    many, few = _measured(JOBS), _measured(JOBS // FEWER)
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


def _measured(jobs: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="jc-") as home:
        keys.ensure(Path(home))
        own = {"CONSOLE_HOME": home, "DATABASE_URL": "", "REDIS_URL": "redis://127.0.0.1:1/0"}
        run = subprocess.run(
            [sys.executable, "-m", "tests.bench.observed", str(jobs)],
            cwd=CHECKOUT,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=True,
        )
    said: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return said
