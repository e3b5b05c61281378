"""Connections to ports of pods, by `pods/portforward` over a WebSocket."""

from __future__ import annotations

import socket

from jobs.backends.kubernetes.client.connection import Connection


async def open_port(
    connection: Connection, namespace: str, pod: str, port: int, *, timeout_s: float = 10
) -> socket.socket:
    """Return a connected, non-blocking socket to a port of a pod.

    Raises ApiError, Unreachable, or ConnectionRefusedError where nothing listens.
    """
    raise NotImplementedError
