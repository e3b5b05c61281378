"""Sockets in the networks of replicas: made there by the cluster's agent, which passes their descriptors."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any, Final

from jobs.backends.base import ReplicaRef
from jobs.backends.sessions import Barrier, NoEntry

AGENT_SOCKET: Final = ".agent.sock"
TIMEOUT_S: Final = 5.0
_MOST_BYTES: Final = 64 * 1024


def make_socket(root: Path, key: str, ref: ReplicaRef, family: socket.AddressFamily) -> socket.socket:
    """Return a new TCP socket in the replica's network.  Raises NoEntry."""
    request = {"key": key, "role": ref.role, "index": ref.index, "family": family.name}
    try:
        answer, made = _ask(root, {"socket": request})
    except (OSError, ValueError) as error:
        raise NoEntry(Barrier.ENGINE_AWAY, repr(error)) from error
    if made is None:
        raise NoEntry(Barrier(answer.get("barrier", Barrier.FAILED)), str(answer.get("detail", "")))
    return made


def _ask(root: Path, request: dict[str, Any]) -> tuple[dict[str, Any], socket.socket | None]:
    """Send one request to the agent of the cluster at `root`; return its answer, and the socket with it."""
    folder = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
            agent.settimeout(TIMEOUT_S)
            agent.connect(f"/proc/self/fd/{folder}/{AGENT_SOCKET}")  # the whole path may be too long for one
            agent.sendall(json.dumps(request).encode() + b"\n")
            return _read_answer(agent)
    finally:
        os.close(folder)


def _read_answer(agent: socket.socket) -> tuple[dict[str, Any], socket.socket | None]:
    line, made = b"", None
    try:
        while not line.endswith(b"\n"):
            more, descriptors, _flags, _address = socket.recv_fds(agent, _MOST_BYTES, 1)
            made = socket.socket(fileno=descriptors[0]) if descriptors else made
            if not more or len(line) > _MOST_BYTES:
                raise ConnectionResetError("the agent is gone")
            line += more
        answer: dict[str, Any] = json.loads(line)
    except BaseException:
        if made is not None:
            made.close()
        raise
    return answer, made
