"""Free host ports for a plan."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from collections.abc import Set as AbstractSet


class NoPortFree(Exception):
    """Not enough ports; `port` names the one that was asked for, 0 when any would have done."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.port = port


class PortAllocator:
    """Hands out ports that nobody was given and nobody uses.

    `span` is the range (first, last) for those who leave the choice to us; `taken` is what live
    attempts hold.
    """

    def __init__(self, span: tuple[int, int], taken: AbstractSet[int]) -> None:
        self._taken = set(taken)
        first, last = span
        self._free = iter(random.sample(range(first, last + 1), last + 1 - first))

    def any(self, count: int) -> tuple[int, ...]:
        """`count` ports from the range, in no order."""
        return tuple(next(self._usable(), None) or self._none() for _ in range(count))

    def exactly(self, first: int, count: int) -> tuple[int, ...]:
        """The `count` ports from `first` on."""
        ports = tuple(range(first, first + count))
        for port in ports:
            if port in self._taken or not is_free(port):
                raise NoPortFree(port)
        self._taken.update(ports)
        return ports

    def _usable(self) -> Iterator[int]:
        for port in self._free:
            if port not in self._taken and is_free(port):
                self._taken.add(port)
                yield port

    def _none(self) -> int:
        raise NoPortFree


def is_free(port: int) -> bool:
    """Tell whether the port can be bound on this machine right now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
