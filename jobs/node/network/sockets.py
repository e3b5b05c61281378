"""Sockets made in the network of a replica and used outside of it."""

from __future__ import annotations


def open_socket(pid: int, family: int) -> int:
    """Return the descriptor of a new TCP socket in the network namespace of the process `pid`.

    `family` is `socket.AF_INET` or `socket.AF_INET6`.  Raises OSError, also when there is no such process.
    The caller must know that `pid` is still the process that it means, for example by holding a pidfd of it.
    """
    raise NotImplementedError
