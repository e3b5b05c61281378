"""Which isolation this machine can give: found by trying, in a process of its own, what a wrapper does."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache

from jobs.backends.local.launch import RUNNER
from jobs.node.sandbox.isolation import Isolation


@cache
def detect(python: str) -> Isolation:
    """The best that works here.  Takes some tens of milliseconds the first time in a process."""
    return next(
        (mode for mode in (Isolation.PERSONS, Isolation.NAMESPACES) if _works(python, mode)), Isolation.NONE
    )


def _works(python: str, mode: Isolation) -> bool:
    if mode is Isolation.PERSONS and os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory(prefix="job-console-") as folder:
        command = [python, "-I", "-S", str(RUNNER), "probe", mode, folder]
        try:
            return (
                subprocess.run(
                    command, cwd="/", env={}, capture_output=True, timeout=10, check=False
                ).returncode
                == 0
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
