"""Ports of this machine for what a test starts, and perhaps ends and starts again.

Not those that outgoing connections and jobs without a wish are given: while nobody listens, one of them would
take the port. Of ten thousand connections to a neighbour's crowd some did.
"""

import random
import socket
from contextlib import ExitStack
from typing import Final

RANGE: Final = range(10_000, 20_000)
TRIES: Final = 200
_RANDOM = random.SystemRandom()  # pytest-randomly makes all processes throw the same dice


def free_port() -> int:
    """A TCP port that nobody listens on."""
    return free_ports(1)


def free_ports(count: int) -> int:
    """The first of so many in a row."""
    for _ in range(TRIES):
        first = _RANDOM.randrange(RANGE.start, RANGE.stop - count)
        try:
            with ExitStack() as sockets:
                for port in range(first, first + count):
                    sockets.enter_context(socket.socket()).bind(("", port))
        except OSError:
            continue
        return first
    raise AssertionError(f"there are no {count} free ports in a row")
