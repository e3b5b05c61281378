"""Sockets in the networks of replicas: made there by the cluster's agent, which passes their descriptors."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import ReplicaRef
from jobs.backends.sessions import Barrier, NoEntry
from jobs.node.network.replica_sockets import REQUEST

AGENT_SOCKET: Final = ".agent.sock"
TIMEOUT_S: Final = 5.0
_LONGEST: Final = 64 * 1024


def make_socket(root: Path, key: str, ref: ReplicaRef, family: socket.AddressFamily) -> socket.socket:
    """Return a new TCP socket in the replica's network.  Raises NoEntry."""
    wanted = {"key": key, "role": ref.role, "index": ref.index, "family": family.name}
    try:
        answer, files = _ask(root, {REQUEST: wanted})
    except (OSError, ValueError) as error:
        raise NoEntry(Barrier.ENGINE_AWAY, repr(error)) from error
    if len(files) != 1:
        raise NoEntry(Barrier(answer.get("barrier", Barrier.FAILED)), str(answer.get("detail", "")))
    return socket.socket(fileno=files[0])


def _ask(root: Path, request: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """Ask the agent of the cluster at `root`; return its answer and the descriptors with it."""
    folder = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as agent:
            agent.settimeout(TIMEOUT_S)
            agent.connect(f"/proc/self/fd/{folder}/{AGENT_SOCKET}")  # the whole path may be too long for one
            agent.send(json.dumps(request).encode())
            data, files, _flags, _address = socket.recv_fds(agent, _LONGEST, 1)
    finally:
        os.close(folder)
    answer: dict[str, Any] = json.loads(data)
    return answer, files
