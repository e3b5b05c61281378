"""Where the cluster's nodes are reached, by Slurm's own word.

What a job writes into its folder is the job's to change: it may say on which node a replica is, but not where
this machine connects to.
"""

from __future__ import annotations

import time
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.config import SlurmConfig
from jobs.backends.slurm.controller import Controller

KNOWN_S: Final = 300.0
"""So long the addresses of a cluster's nodes are believed; one that is not among them is asked for sooner."""

AGAIN_S: Final = 15.0
"""So long nobody asks again for a node that Slurm does not know."""

_known: Final[dict[str, tuple[float, dict[str, str]]]] = {}
"""By the cluster's settings: when it was asked, and what it said."""


def address(config: SlurmConfig, controller: Controller, node: str) -> str:
    """Where that node is reached; nothing where Slurm knows no such node, or can't be asked now."""
    asked_at, told = _known.get(repr(config), (float("-inf"), {}))
    if time.monotonic() - asked_at >= (KNOWN_S if node in told else AGAIN_S):
        try:
            told = {each["NodeName"]: each.get("NodeAddr", "") for each in controller.nodes()}
        except Unreachable:
            return told.get(node, "")
        _known[repr(config)] = time.monotonic(), told
    return told.get(node, "")
