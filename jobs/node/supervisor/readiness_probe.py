"""Readiness of ports, asked by HTTP where the job said that they may be asked.

It never waits: the supervisor has deadlines to keep.  A question is sent at one look, and its answer read at
a later one.  Nobody else is ever asked: what listens may be no web server, and take a request for nonsense.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from jobs.node.network.sockets import open_socket
from jobs.states import Params, Unready

AGAIN_S: Final = (1.0, 15.0)
"""How long after an answer it is asked again: until it is ready, and then."""

PATIENCE_S: Final = 5.0
_CONNECT_S: Final = 0.05
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})")
_ENOUGH: Final = 12
_BROKEN: Final = 500

Answer = tuple[Unready | None, Params]


@dataclass(frozen=True, slots=True)
class Target:
    """An address that reaches a replica in the network of the process `pid`; None is this process' own."""

    host: str
    pid: int | None = None

    def connect(self, port: int) -> socket.socket:
        """Connect to a port there; a connection is made at once or not at all.  Raises OSError."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        made = (
            socket.socket(family) if self.pid is None else socket.socket(fileno=open_socket(self.pid, family))
        )
        try:
            made.settimeout(_CONNECT_S)
            made.connect((self.host, port))
        except OSError:
            made.close()
            raise
        return made


class ReadinessProbe:
    """One port, and what it answered last: nothing that is wrong, or why it is not ready."""

    def __init__(self, target: Target, port: int, path: str) -> None:
        self.asks_for = (target, port, path)
        self._answer: Answer = (Unready.NO_ANSWER, {})
        self._socket: socket.socket | None = None
        self._heard = b""
        self._moment = 0.0

    def look(self, now: float) -> Answer:
        """Go on with it."""
        if self._socket is None:
            if now >= self._moment:
                self._ask(now)
        else:
            self._listen(now)
        return self._answer

    def close(self) -> None:
        """Leave it alone."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, now: float) -> None:
        target, port, path = self.asks_for
        try:
            asked = target.connect(port)
        except OSError:
            self._learn((Unready.NO_ANSWER, {}), now)
            return
        request = f"GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\nAccept: */*\r\n\r\n"
        try:
            asked.sendall(request.encode("ascii"))
        except OSError:
            asked.close()
            self._learn((Unready.NO_ANSWER, {}), now)
            return
        asked.setblocking(False)
        self._socket, self._heard, self._moment = asked, b"", now + PATIENCE_S

    def _listen(self, now: float) -> None:
        assert self._socket is not None
        ended = False
        with suppress(BlockingIOError):
            try:
                more = self._socket.recv(_ENOUGH - len(self._heard))
            except ConnectionError:
                more = b""
            self._heard += more
            ended = not more
        found = _STATUS.match(self._heard)
        if found:
            status = int(found[1])
            self._learn((Unready.STATUS, {"status": status}) if status >= _BROKEN else (None, {}), now)
        elif ended or len(self._heard) >= _ENOUGH:
            self._learn((Unready.NO_HTTP, {}), now)
        elif now >= self._moment:
            self._learn((Unready.NO_ANSWER, {}), now)

    def _learn(self, answer: Answer, now: float) -> None:
        self.close()
        self._answer = answer
        self._moment = now + AGAIN_S[answer[0] is None]


class ReadinessProbes:
    """The probes of an attempt, by the replica's position and the port."""

    def __init__(self) -> None:
        self._probes: dict[tuple[int, int], ReadinessProbe] = {}

    def look(self, position: int, port: int, target: Target, path: str) -> Answer:
        """Go on with the probe of a port; start it if it is another one than before."""
        key = position, port
        found = self._probes.get(key)
        if found is None or found.asks_for != (target, port, path):
            self.drop(key)
            found = self._probes[key] = ReadinessProbe(target, port, path)
        return found.look(time.monotonic())

    def drop(self, key: tuple[int, int]) -> None:
        """Leave a port alone."""
        if (found := self._probes.pop(key, None)) is not None:
            found.close()

    def drop_others(self, wanted: Container[tuple[int, int]]) -> None:
        """Leave all other ports alone."""
        for key in [key for key in self._probes if key not in wanted]:
            self.drop(key)
