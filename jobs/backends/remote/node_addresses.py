"""Addresses of a cluster's nodes, as the engine tells them, cached by the process.

A job can write what it likes into its status files: they may name the node of a replica, but not the address
that the console connects to, nor a node that is none of the job's.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from jobs.backends.base import Unreachable

CACHE_S: Final = 300.0
"""How long the addresses of a cluster's nodes are cached; an unknown node is asked for sooner."""

RETRY_S: Final = 15.0
"""How long the engine is not asked again for a node that it does not know."""

Job = TypeVar("Job", bound=Hashable)

_MOST_JOBS: Final = 10_000


class NodeAddress(NamedTuple):
    """The engine's id of a node, and its address; both are "" for none."""

    id: str
    address: str


_UNKNOWN: Final = NodeAddress("", "")
_known: Final[dict[str, tuple[float, Mapping[str, NodeAddress]]]] = {}
"""By the cluster: when it was asked, and each node by its name."""

_of_jobs: Final[dict[tuple[str, Hashable], frozenset[str]]] = {}
"""By the cluster and a job: the ids of its nodes, which stay the same."""


class NodeAddresses(ABC, Generic[Job]):
    """The addresses of one cluster's nodes, "" where the engine can't be asked now."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    @abstractmethod
    def _list_nodes(self) -> Mapping[str, NodeAddress]:
        """Return all nodes by their names.  Raises Unreachable."""

    @abstractmethod
    def _list_nodes_of(self, job: Job) -> frozenset[str]:
        """Return the ids of a job's nodes, none before it has any.  Raises Unreachable."""

    def of_node(self, node: str) -> str:
        """Return the address of a node, "" where the engine knows no such node."""
        return self._find(node).address

    def of_job(self, job: Job, node: str) -> str:
        """Return the address of a node of a job, "" where it is none of the job's."""
        found = self._find(node)
        return found.address if found.id and found.id in self._nodes_of(job) else ""

    def _find(self, node: str) -> NodeAddress:
        asked_at, nodes = _known.get(self._cluster, (float("-inf"), {}))
        if time.monotonic() - asked_at >= (CACHE_S if node in nodes else RETRY_S):
            try:
                nodes = self._list_nodes()
            except Unreachable:
                return nodes.get(node, _UNKNOWN)
            _known[self._cluster] = time.monotonic(), nodes
        return nodes.get(node, _UNKNOWN)

    def _nodes_of(self, job: Job) -> frozenset[str]:
        if (nodes := _of_jobs.get((self._cluster, job))) is None:
            try:
                nodes = self._list_nodes_of(job)
            except Unreachable:
                return frozenset()
            if len(_of_jobs) > _MOST_JOBS:
                _of_jobs.clear()
            if nodes:
                _of_jobs[self._cluster, job] = nodes
        return nodes
