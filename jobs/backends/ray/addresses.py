"""Addresses of the cluster's nodes, as Ray tells them."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.backends.ray.client import RayClient
from jobs.backends.ray.config import RayConfig
from jobs.backends.remote.node_addresses import NodeAddress, NodeAddresses


class RayAddresses(NodeAddresses[str]):
    """See `NodeAddresses`; a job is an attempt's key."""

    def __init__(self, config: RayConfig) -> None:
        super().__init__(config.url)
        self._client = RayClient(config)

    def _list_nodes(self) -> Mapping[str, NodeAddress]:
        nodes = self._client.list_nodes()
        return {each.name: NodeAddress(each.node_id, each.address) for each in nodes if each.is_alive}

    def _list_nodes_of(self, job: str) -> frozenset[str]:
        bundles = self._client.list_bundles()
        return frozenset(each.node_id for each in bundles if each.group == job and each.node_id)
