"""Processes of this machine, as tests count them."""

from __future__ import annotations

import psutil


def count_processes(*command: str) -> int:
    """Count the processes with exactly these arguments."""
    return sum(each.info["cmdline"] == list(command) for each in psutil.process_iter(["cmdline"]))
