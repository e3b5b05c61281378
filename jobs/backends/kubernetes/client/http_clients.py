"""HTTP clients for apiservers, which the process keeps for its next request."""

from __future__ import annotations

import atexit
import os
import socket
from typing import Final

import httpx

from jobs.backends.kubernetes.client.connection import ApiConnection
from jobs.backends.kubernetes.client.credentials import Certificate

KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)
"""A watch hears nothing for minutes: within 50 seconds it is known that the other end is gone."""

_IDLE: Final = httpx.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=30)

_clients: Final[dict[tuple[int, ApiConnection], tuple[Certificate | None, httpx.Client]]] = {}
"""By process, as children share none.  Making a TLS context takes longer than a request."""


def client_for(connection: ApiConnection, timeout_s: float) -> httpx.Client:
    """Return the client of a connection with its present certificate.  Raises Unreachable."""
    certificate = connection.certificate(timeout_s)
    key = (os.getpid(), connection)
    known = _clients.get(key)
    if known is not None and known[0] == certificate:
        return known[1]
    made = httpx.Client(
        base_url=connection.server,
        transport=httpx.HTTPTransport(
            verify=connection.make_tls_context(certificate),
            limits=_IDLE,
            socket_options=KEEPALIVE,
            trust_env=False,
        ),
        trust_env=False,
        headers={"User-Agent": "job-console", "Accept": "application/json"},
    )
    _clients[key] = certificate, made  # an earlier one is closed by its last request
    return made


@atexit.register
def close_all() -> None:
    """Close all connections of this process."""
    for key in [key for key in _clients if key[0] == os.getpid()]:
        _clients.pop(key)[1].close()
