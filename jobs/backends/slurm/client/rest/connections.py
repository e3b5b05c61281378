"""Connections to slurmrestd, which the process keeps for its next request.

Loading the trusted certificates takes longer than twenty requests.  The standard library's client takes a
fourth of the processor time of others, and each submission takes two requests.
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
"""A connection idle for longer is not used: a firewall may have dropped it silently."""


@dataclass(frozen=True, slots=True)
class Destination:
    """An address and a user: connections are not shared between users."""

    url: str
    user: str = ""

    @property
    def path(self) -> str:
        """Return the prefix of every path there."""
        return "" if self.url.startswith(UNIX) else urlsplit(self.url).path.rstrip("/")


_idle: Final[dict[tuple[int, Destination], deque[tuple[float, HTTPConnection]]]] = {}
"""By process, as children share none: since when each is idle."""


def take_idle(to: Destination, timeout_s: float) -> HTTPConnection | None:
    """Return an idle connection, None if none can be used."""
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


def connect(to: Destination, timeout_s: float) -> HTTPConnection:
    """Return a new connection.  Raises OSError."""
    connection = _new(to.url, timeout_s)
    connection.connect()
    return connection


def give_back(to: Destination, connection: HTTPConnection) -> None:
    """Keep a connection whose answer was read for the next request."""
    if connection.sock is not None:
        _idle_ones(to).append((time.monotonic(), connection))


@atexit.register
def close_all() -> None:
    """Close the idle connections."""
    for idle in _idle.values():
        while idle:
            idle.pop()[1].close()


def _idle_ones(to: Destination) -> deque[tuple[float, HTTPConnection]]:
    return _idle.setdefault((os.getpid(), to), deque())


def _is_quiet(connection: HTTPConnection) -> bool:
    """Return whether the server neither closed it nor sent anything."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)


def _new(url: str, timeout_s: float) -> HTTPConnection:
    if url.startswith(UNIX):
        return _UnixConnection(url.removeprefix(UNIX), timeout_s)
    parts = urlsplit(url)
    if parts.scheme == "https":
        return HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout_s, context=_tls_context())
    return HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)


@lru_cache(maxsize=1)
def _tls_context() -> ssl.SSLContext:
    """Return a context with the certificates that this machine trusts."""
    return ssl.create_default_context()


class _UnixConnection(HTTPConnection):
    """A connection by a UNIX socket."""

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
