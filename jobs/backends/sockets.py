"""TCP connections to services of jobs."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

CONNECT_S: Final = 5.0


async def open_connection(address: str, port: int) -> socket.socket:
    """Return a non-blocking socket that is connected to a numeric address.  Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return await connect_socket(socket.socket(family, socket.SOCK_STREAM), address, port)


async def connect_socket(made: socket.socket, address: str, port: int) -> socket.socket:
    """Connect a new socket and return it; close it where it can't be connected.  Raises OSError."""
    made.setblocking(False)
    try:
        async with asyncio.timeout(CONNECT_S):
            await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return made
