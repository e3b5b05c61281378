"""How long a regular expression takes through a log, beside `grep -E` on the same file."""

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
    """1 GB of numbered lines, of which the last matches."""
    with tempfile.TemporaryDirectory(prefix="jc-") as home:
        keys.ensure(Path(home))
        run = subprocess.run(
            [sys.executable, "-m", "tests.bench.searched"],
            cwd=CHECKOUT,
            env={**os.environ, "CONSOLE_HOME": home},
            capture_output=True,
            text=True,
            check=True,
        )
    measured: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
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
