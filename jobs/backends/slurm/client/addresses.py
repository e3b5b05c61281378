"""Addresses of the cluster's nodes, as Slurm tells them.

A job can change the files in its folder: they may name the node of a replica, but not the address that the
console connects to.
"""

from __future__ import annotations

import time
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.slurm.client.controller import Controller
from jobs.backends.slurm.config import SlurmConfig

CACHE_S: Final = 300.0
"""How long the addresses of a cluster's nodes are cached; an unknown node is asked for sooner."""

RETRY_S: Final = 15.0
"""How long Slurm is not asked again for a node that it does not know."""

_known: Final[dict[str, tuple[float, dict[str, str]]]] = {}
"""By the cluster's settings: when it was asked, and the address of each node."""

_MOST_JOBS: Final = 10_000
_of_jobs: Final[dict[tuple[str, int, int], frozenset[str]]] = {}
"""By the cluster's settings, a job's number and its run: its nodes, which stay the same."""


class NodeAddresses:
    """The addresses of one cluster's nodes, "" where Slurm can't be asked now."""

    def __init__(self, config: SlurmConfig, controller: Controller) -> None:
        self._config, self._controller = config, controller

    def of_node(self, node: str) -> str:
        """Return the address of a node, "" where Slurm knows no such node."""
        asked_at, addresses = _known.get(repr(self._config), (float("-inf"), {}))
        if time.monotonic() - asked_at >= (CACHE_S if node in addresses else RETRY_S):
            try:
                addresses = {each["NodeName"]: each.get("NodeAddr", "") for each in self._controller.nodes()}
            except Unreachable:
                return addresses.get(node, "")
            _known[repr(self._config)] = time.monotonic(), addresses
        return addresses.get(node, "")

    def of_job(self, number: int, run: int, node: str) -> str:
        """Return the address of a node of a job, "" where it is none of the job's."""
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
