"""Sockets in the networks of replicas: made there by the cluster's agent, which passes their descriptors."""

from __future__ import annotations

import socket
from pathlib import Path

from jobs.backends.base import ReplicaRef
from jobs.backends.local import agent_socket
from jobs.backends.sessions import Barrier, NoEntry
from jobs.node.network.replica_sockets import REQUEST


def make_socket(root: Path, key: str, ref: ReplicaRef, family: socket.AddressFamily) -> socket.socket:
    """Return a new TCP socket in the replica's network.  Raises NoEntry."""
    wanted = {"key": key, "role": ref.role, "index": ref.index, "family": family.name}
    try:
        answer, files = agent_socket.ask(root, {REQUEST: wanted})
    except (OSError, ValueError) as error:
        raise NoEntry(Barrier.ENGINE_AWAY, repr(error)) from error
    if len(files) != 1:
        raise NoEntry(Barrier(answer.get("barrier", Barrier.FAILED)), str(answer.get("detail", "")))
    return socket.socket(fileno=files[0])
