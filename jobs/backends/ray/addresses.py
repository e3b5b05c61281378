"""Addresses of the cluster's nodes, as Ray tells them.

A job can write what it likes into its status files: they may name the node of a replica, but not the address
that the console connects to, nor a node on which the job has no bundle.
"""

from __future__ import annotations

import time
from typing import Final

from jobs.backends.base import Unreachable
from jobs.backends.ray.client import RayClient
from jobs.backends.ray.config import RayConfig

CACHE_S: Final = 300.0
"""How long the addresses of a cluster's nodes are cached; an unknown node is asked for sooner."""

RETRY_S: Final = 15.0
"""How long Ray is not asked again for a node that it does not know."""

_MOST_JOBS: Final = 10_000
_known: Final[dict[str, tuple[float, dict[str, tuple[str, str]]]]] = {}
"""By the dashboard's address: when it was asked, and the id and address of each node by its name."""

_of_jobs: Final[dict[tuple[str, str], frozenset[str]]] = {}
"""By the dashboard's address and an attempt's key: the ids of its nodes, which stay the same."""


def find_address(config: RayConfig, node: str) -> str:
    """Return the address of a node, "" where Ray knows no such node or can't be asked now."""
    return _find_node(config, node)[1]


def find_own_address(config: RayConfig, key: str, node: str) -> str:
    """Return the address of a node of an attempt, "" for any other and where Ray can't be asked now."""
    node_id, address = _find_node(config, node)
    return address if node_id and node_id in _find_nodes_of(config, key) else ""


def _find_node(config: RayConfig, node: str) -> tuple[str, str]:
    """Return the id and the address of a node."""
    asked_at, nodes = _known.get(config.url, (float("-inf"), {}))
    if time.monotonic() - asked_at >= (CACHE_S if node in nodes else RETRY_S):
        try:
            found = RayClient(config).list_nodes()
        except Unreachable:
            return nodes.get(node, ("", ""))
        nodes = {each.name: (each.node_id, each.address) for each in found if each.is_alive}
        _known[config.url] = time.monotonic(), nodes
    return nodes.get(node, ("", ""))


def _find_nodes_of(config: RayConfig, key: str) -> frozenset[str]:
    if (nodes := _of_jobs.get((config.url, key))) is None:
        try:
            bundles = list(RayClient(config).list_bundles())
        except Unreachable:
            return frozenset()
        nodes = frozenset(each.node_id for each in bundles if each.group == key and each.node_id)
        if len(_of_jobs) > _MOST_JOBS:
            _of_jobs.clear()
        if nodes:
            _of_jobs[config.url, key] = nodes
    return nodes
