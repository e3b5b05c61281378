"""Connections that a client has forwarded to what a job serves."""

from __future__ import annotations

import asyncio
from typing import Final

import asyncssh
from asyncssh.forward import SSHForwarder

MOST: Final = 200
"""Of one client at a time."""


class Forwards:
    """Those of one client."""

    def __init__(self) -> None:
        self._open = 0

    async def connect(self, host: str, port: int) -> SSHForwarder:
        """Open one.  Raises asyncssh.ChannelOpenError."""
        if self._open >= MOST:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_RESOURCE_SHORTAGE, "Too many connections")
        self._open += 1
        try:
            _, there = await asyncio.get_running_loop().create_connection(SSHForwarder, host, port)
        except OSError as error:
            self._open -= 1
            said = error.strerror or "Connection refused"
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, said) from None
        return _Here(self, there)

    def closed(self) -> None:
        """One of them is."""
        self._open -= 1


class _Here(SSHForwarder):
    """The client's end, which is lost once."""

    def __init__(self, all_: Forwards, there: SSHForwarder) -> None:
        super().__init__(there)
        self._all = all_

    def eof_received(self) -> bool:
        """Over when the job has said all before: its socket has nothing left by which it could tell."""
        goes_on = super().eof_received()
        if not goes_on:
            self.close()
        return goes_on

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._all.closed()
