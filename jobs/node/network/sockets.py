"""Sockets made in the network of a replica and used outside of it."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from jobs.node.network.namespaces import make_inside

_NAMESPACE: Final = os.O_RDONLY | os.O_CLOEXEC


def open_socket(pid: int, family: int) -> int:
    """Return the descriptor of a new TCP socket in the network namespace of the process `pid`.

    `family` is `socket.AF_INET` or `socket.AF_INET6`.  Raises like `open_inside`.
    """
    return open_inside(pid, lambda: socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC))


def open_inside(pid: int, make: Callable[[], socket.socket]) -> int:
    """Return the descriptor of what `make` returns in the network namespace of the process `pid`.

    Raises OSError, and FileNotFoundError when there is no such process or when it is in the caller's own
    network.  The caller must know that `pid` is still the process that it means, for example by holding a
    pidfd of it.
    """
    net = open_foreign(pid)
    try:
        user = _foreign_user_namespace(pid)
        try:
            return make_inside(user, net, lambda: [make().detach()])[0]
        finally:
            if user is not None:
                os.close(user)
    finally:
        os.close(net)


def open_foreign(pid: int) -> int:
    """Open the network namespace of a process.

    Raises FileNotFoundError where that is the caller's own: a process that is about to enter a replica's
    network is none of the replica's yet.
    """
    net = os.open(f"/proc/{pid}/ns/net", _NAMESPACE)
    if _is_own(net, "net"):
        os.close(net)
        raise FileNotFoundError(errno.ENOENT, "the process has no network of its own")
    return net


def _foreign_user_namespace(pid: int) -> int | None:
    """Open the user namespace of a process; None where it is the caller's."""
    user = os.open(f"/proc/{pid}/ns/user", _NAMESPACE)
    if _is_own(user, "user"):
        os.close(user)
        return None
    return user


def _is_own(fd: int, kind: str) -> bool:
    return os.path.samestat(os.fstat(fd), Path("/proc/thread-self/ns", kind).stat())
