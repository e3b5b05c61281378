"""Requests to the agent of a cluster on this machine (`jobs.node.agent.requests`)."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any, Final

from jobs.node.supervisor.layout import AGENT_SOCKET

TIMEOUT_S: Final = 5.0
_LONGEST: Final = 64 * 1024


def ask(root: Path, request: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """Ask the agent of the cluster at `root`; return its answer and the descriptors with it.

    Raises OSError when it is away, ConnectionError when it ends, and ValueError when it answers nonsense.
    """
    folder = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as agent:
            agent.settimeout(TIMEOUT_S)
            agent.connect(f"/proc/self/fd/{folder}/{AGENT_SOCKET}")  # the whole path may be too long for one
            agent.send(json.dumps(request).encode())
            data, files, _flags, _address = socket.recv_fds(agent, _LONGEST, 1)
    finally:
        os.close(folder)
    if not data:
        raise ConnectionResetError("the agent is gone")
    answer: dict[str, Any] = json.loads(data)
    return answer, files
