"""Where the cluster's nodes are reached, by Slurm's own word.

What a job writes into its folder is the job's to change: it may say on which node a replica is, but not where
this machine connects to.
"""

from __future__ import annotations

import time
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.client.controller import Controller
from jobs.backends.slurm.config import SlurmConfig

KNOWN_S: Final = 300.0
"""So long the addresses of a cluster's nodes are believed; one that is not among them is asked for sooner."""

AGAIN_S: Final = 15.0
"""So long nobody asks again for a node that Slurm does not know."""

_known: Final[dict[str, tuple[float, dict[str, str]]]] = {}
"""By the cluster's settings: when it was asked, and what it said."""

_MOST_JOBS: Final = 10_000
_of_jobs: Final[dict[tuple[str, int, int], frozenset[str]]] = {}
"""By the cluster's settings, a job's number and its run: the nodes that it has, which stay the same."""


class Whereabouts:
    """Those of one cluster.  Nothing is said where Slurm can't be asked now."""

    def __init__(self, config: SlurmConfig, controller: Controller) -> None:
        self._config, self._controller = config, controller

    def of_node(self, node: str) -> str:
        """Where that node is reached; nothing where Slurm knows no such node."""
        asked_at, told = _known.get(repr(self._config), (float("-inf"), {}))
        if time.monotonic() - asked_at >= (KNOWN_S if node in told else AGAIN_S):
            try:
                told = {each["NodeName"]: each.get("NodeAddr", "") for each in self._controller.nodes()}
            except Unreachable:
                return told.get(node, "")
            _known[repr(self._config)] = time.monotonic(), told
        return told.get(node, "")

    def of_job(self, number: int, run: int, node: str) -> str:
        """Where that node of that job is reached; nothing where it is none of the job's."""
        key = (repr(self._config), number, run)
        if (nodes := _of_jobs.get(key)) is None:
            try:
                nodes = frozenset(self._controller.nodes_of(number))
            except Unreachable:
                return ""
            if len(_of_jobs) > _MOST_JOBS:
                _of_jobs.clear()
            if nodes:
                _of_jobs[key] = nodes
        return self.of_node(node) if node in nodes else ""
