"""How fast training metrics are read from output: CPU time of one core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from console.configuration import keys
from console.home import CHECKOUT
from tests.bench.figures import Figure


def measure() -> list[Figure]:
    """A log of points, parsed and merged into series; and a log without any."""
    with tempfile.TemporaryDirectory(prefix="jc-") as home:
        keys.ensure(Path(home))
        run = subprocess.run(
            [sys.executable, "-m", "tests.bench.points"],
            cwd=CHECKOUT,
            env={**os.environ, "CONSOLE_HOME": home},
            capture_output=True,
            text=True,
            check=True,
        )
    measured: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return [
        Figure("1,000,000 points of output, parsed and down-sampled, CPU", measured["points_s"], "s"),
        Figure("output without metrics, looked through, CPU", measured["text_mb_s"], "MB/s"),
    ]
