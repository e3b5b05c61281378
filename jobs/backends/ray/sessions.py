"""Sessions beside replicas on Ray: by session listeners, which the replica runners start on request."""

from __future__ import annotations

from pathlib import Path

from jobs.backends.base import ReplicaRef
from jobs.backends.ray.addresses import RayAddresses
from jobs.backends.ray.config import RayConfig
from jobs.backends.remote import attempts, bundle
from jobs.backends.remote.replica_sessions import ReplicaSessions
from jobs.backends.remote.transport import Transport
from jobs.backends.sessions import Barrier, NoEntry


class ListenerSessions(ReplicaSessions):
    """Sessions beside one replica of a job on Ray."""

    def __init__(self, config: RayConfig, key: str, replica: ReplicaRef, addresses: RayAddresses) -> None:
        """Read the attempt's record.  Raises NoEntry."""
        super().__init__(config.root, key, replica, config.timeout_s)
        self._config, self._addresses = config, addresses

    def _transport(self, node: str) -> Transport:
        """See `ReplicaSessions`."""
        try:
            path = attempts.node_root(self._config.nodes_folder, self._key) / bundle.file_name()
            return self._listener(node, f"{self._config.python} {path}")
        except OSError as error:
            raise NoEntry(Barrier.FAILED, str(error)) from error

    def _address(self, node: str) -> str:
        """See `ReplicaSessions`."""
        return self._addresses.of_job(self._key, node)

    def _node_folder(self) -> Path:
        """See `ReplicaSessions`."""
        return attempts.node_folder(self._config.nodes_folder, self._key)

    @staticmethod
    def classify(complaint: str) -> Barrier:
        """Return the barrier that an error of the listener means."""
        return Barrier.NOT_RUNNING if complaint.startswith("not_running") else Barrier.FAILED
