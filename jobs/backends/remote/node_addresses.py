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
        nodes, asked_at = self._read_cache()
        if _is_recent(asked_at, is_known=node in nodes):
            return nodes.get(node, _UNKNOWN).address
        return self._ask(nodes).get(node, _UNKNOWN).address

    def of_job(self, job: Job, node: str) -> str:
        """Return the address of a node of a job, "" where it is none of the job's.

        A node that joined the cluster again has its name and another id: it is asked for anew.
        """
        own = self._nodes_of(job)
        nodes, asked_at = self._read_cache()
        if not _is_recent(asked_at, is_known=nodes.get(node, _UNKNOWN).id in own):
            nodes = self._ask(nodes)
        found = nodes.get(node, _UNKNOWN)
        return found.address if found.id in own else ""

    def _read_cache(self) -> tuple[Mapping[str, NodeAddress], float]:
        """Return the nodes as the engine told them, and when it was asked."""
        asked_at, nodes = _known.get(self._cluster, (float("-inf"), {}))
        return nodes, asked_at

    def _ask(self, before: Mapping[str, NodeAddress]) -> Mapping[str, NodeAddress]:
        """Return the nodes as the engine tells them now, those of `before` where it can't be asked."""
        try:
            nodes = self._list_nodes()
        except Unreachable:
            return before
        _known[self._cluster] = time.monotonic(), nodes
        return nodes

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


def _is_recent(asked_at: float, *, is_known: bool) -> bool:
    """Return whether the engine need not be asked again for a node."""
    return time.monotonic() - asked_at < (CACHE_S if is_known else RETRY_S)
