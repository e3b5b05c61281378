"""Connections to slurmrestd, kept by the process for the next request.

A connection takes no longer than a request, and what TLS needs to know of this machine takes longer than
twenty.  Of the standard library: a request by it costs a fourth of the processor's time, and there are two to
each job that is handed over.
"""

from __future__ import annotations

import atexit
import os
import select
import socket
import ssl
import time
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPConnection, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

UNIX: Final = "unix:"

IDLE_S: Final = 5.0
"""One that nobody used for so long is not used again: what lies between may have dropped it silently."""


@dataclass(frozen=True, slots=True)
class To:
    """Where it leads, and as whom it is used: nobody's request goes by the connection of somebody else."""

    url: str
    user: str = ""

    @property
    def path(self) -> str:
        """What stands before every path there."""
        return "" if self.url.startswith(UNIX) else urlsplit(self.url).path.rstrip("/")


_idle: Final[dict[tuple[int, To], deque[tuple[float, HTTPConnection]]]] = {}
"""By process, as none is shared with a child: since when each waits."""


def kept(to: To, timeout_s: float) -> HTTPConnection | None:
    """A connection that was kept, None when there is none that can be used."""
    idle = _idle_ones(to)
    while idle:
        try:
            since, connection = idle.pop()
        except IndexError:  # another thread has taken the last
            return None
        if time.monotonic() - since < IDLE_S and _is_quiet(connection):
            connection.sock.settimeout(timeout_s)
            return connection
        connection.close()
    return None


def made(to: To, timeout_s: float) -> HTTPConnection:
    """A new one.  Raises OSError."""
    connection = _new(to.url, timeout_s)
    connection.connect()
    return connection


def keep(to: To, connection: HTTPConnection) -> None:
    """Keep it for the next one who asks; its answer has been read."""
    if connection.sock is not None:
        _idle_ones(to).append((time.monotonic(), connection))


@atexit.register
def close_all() -> None:
    """Close those that are kept."""
    for idle in _idle.values():
        while idle:
            idle.pop()[1].close()


def _idle_ones(to: To) -> deque[tuple[float, HTTPConnection]]:
    return _idle.setdefault((os.getpid(), to), deque())


def _is_quiet(connection: HTTPConnection) -> bool:
    """Whether the server neither closed it nor said anything that nobody asked for."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)


def _new(url: str, timeout_s: float) -> HTTPConnection:
    if url.startswith(UNIX):
        return _OnThisMachine(url.removeprefix(UNIX), timeout_s)
    parts = urlsplit(url)
    if parts.scheme == "https":
        return HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout_s, context=_trusted())
    return HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Whom this machine trusts."""
    return ssl.create_default_context()


class _OnThisMachine(HTTPConnection):
    """By a UNIX socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """See `HTTPConnection`."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.close()
            raise
