"""Requests to the agent: packets of JSON at a Unix socket, from processes of the same user.

{"tend": KEY}            there is something new about an attempt: its plan, a stop, an extension
{"socket": {"key", "role", "index", "family"}}
                         answered with the descriptor of a new TCP socket in a replica's network
                         (`jobs.node.network.replica_sockets`)
{"hand_over": RELEASE}   end, and leave the attempts to the next agent, unless this one is of that release
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from jobs.node.supervisor import layout

LONGEST: Final = 64 * 1024
"""Bytes of a request."""

_BACKLOG: Final = 128
_PEER: Final = struct.Struct("3i")

Answer = Callable[[Mapping[str, Any]], Awaitable[tuple[Mapping[str, Any], Sequence[int]]]]
"""Returns the answer to a request, and descriptors that are closed once they are sent."""


def listen(root: int) -> socket.socket:
    """Return the listening socket in the open folder `root`, in the place of an earlier agent's."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.setblocking(False)
    fresh = f"{layout.AGENT_SOCKET}.{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=root)
    made.bind(f"/proc/self/fd/{root}/{fresh}")  # the whole path may be too long for one
    os.chmod(fresh, 0o600, dir_fd=root)
    made.listen(_BACKLOG)
    os.rename(fresh, layout.AGENT_SOCKET, src_dir_fd=root, dst_dir_fd=root)
    return made


class RequestServer:
    """Serves connections until it is cancelled."""

    def __init__(self, listening: socket.socket, answer: Answer) -> None:
        self._listening, self._answer = listening, answer
        self._loop = asyncio.get_running_loop()
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serve."""
        while True:
            connection, _address = await self._loop.sock_accept(self._listening)
            task = self._loop.create_task(self._serve_connection(connection))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

    async def _serve_connection(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.setblocking(False)
            if not _is_same_user(connection):
                return
            while request := await self._loop.sock_recv(connection, LONGEST):
                await self._serve_request(connection, request)

    async def _serve_request(self, connection: socket.socket, data: bytes) -> None:
        answer: Mapping[str, Any]
        files: Sequence[int] = ()
        try:
            request = json.loads(data)
            answer, files = await self._answer(request if isinstance(request, dict) else {})
        except ValueError:
            answer = {"error": "no JSON"}
        try:
            socket.send_fds(connection, [json.dumps(answer).encode()], files)
        finally:
            for fd in files:
                os.close(fd)


def _is_same_user(connection: socket.socket) -> bool:
    _pid, uid, _gid = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return bool(uid == os.geteuid())
