"""The network namespace of one replica, and its link to the router."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from jobs.node.network.attempt_network import AttemptNetwork
from jobs.node.supervisor.plan import Plan, PlannedReplica


@dataclass(frozen=True, slots=True)
class ReplicaNetwork:
    """`fd` is an open descriptor of the replica's network namespace."""

    fd: int

    @classmethod
    def make(cls, network: AttemptNetwork, plan: Plan, place: PlannedReplica) -> Self:
        """Make the namespace with its address and its link to the router; raises OSError."""
        raise NotImplementedError

    def enter(self) -> None:
        """Move the calling process, a child that has not given up its rights yet, into the namespace."""
        raise NotImplementedError
