"""Addresses of the cluster's nodes, as Slurm tells them."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.backends.remote.node_addresses import NodeAddress, NodeAddresses
from jobs.backends.slurm.client.controller import Controller
from jobs.backends.slurm.config import SlurmConfig


class SlurmAddresses(NodeAddresses[tuple[int, int]]):
    """See `NodeAddresses`; a job is its number and run, each of which may have other nodes."""

    def __init__(self, config: SlurmConfig, controller: Controller) -> None:
        super().__init__(repr(config))
        self._controller = controller

    def _list_nodes(self) -> Mapping[str, NodeAddress]:
        names = {each["NodeName"]: each.get("NodeAddr", "") for each in self._controller.nodes()}
        return {name: NodeAddress(name, address) for name, address in names.items()}

    def _list_nodes_of(self, job: tuple[int, int]) -> frozenset[str]:
        return frozenset(self._controller.nodes_of(job[0]))
