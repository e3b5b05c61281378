"""The Unix socket at which the web server answers running jobs (`jobs.access.job_service`).

Agents of local clusters connect to it.  They run as the console's own user, and nobody else may.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

import uvicorn
from uvicorn.server import ServerState

from console.server.protocol import BoundedHttp

APPLICATION: Final = "jobs.access.job_service:application"
"""By its name: it needs Django, which is set up by the time that it is loaded."""

BACKLOG: Final = 256
_AGAIN_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.1
_CREDENTIALS: Final = struct.Struct("=iII")


class JobServiceListener:
    """Serves jobs at `path`; as much of `asyncio.Server` as uvicorn uses.

    Of several web processes one listens, and another takes over when it has ended.
    """

    def __init__(self, state: ServerState, path: Path) -> None:
        self._config = uvicorn.Config(
            APPLICATION,
            http=BoundedHttp,
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            proxy_headers=False,
            server_header=False,
        )
        self._config.load()
        self._state, self._path = state, path
        self._serving = asyncio.create_task(self._serve())

    def close(self) -> None:
        self._serving.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(self._serving, return_exceptions=True)

    async def _serve(self) -> None:
        with self._path.with_suffix(".lock").open("wb") as lock:
            while not _take(lock.fileno()):  # noqa: ASYNC110  # another process lets it go
                await asyncio.sleep(_AGAIN_SECONDS)
            with _listen(self._path) as listening:
                while True:
                    await self._accept(listening)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection, _address = await loop.sock_accept(listening)
        except OSError:  # no descriptor is left
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        if _user_of(connection) != os.geteuid():
            connection.close()
            return
        try:
            await loop.connect_accepted_socket(self._make_protocol, connection)
        except OSError:  # gone already
            connection.close()

    def _make_protocol(self) -> asyncio.Protocol:
        return BoundedHttp(config=self._config, server_state=self._state, app_state={})


def _take(lock: int) -> bool:
    """Take the lock that lasts as long as this process."""
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _listen(path: Path) -> socket.socket:
    """Return a socket that listens at `path`, in place of one of an earlier process."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.setblocking(False)
    listening.bind(str(path))
    path.chmod(0o600)
    listening.listen(BACKLOG)
    return listening


def _user_of(connection: socket.socket) -> int:
    """Return the user id of the process that connected."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(packed)[1])
