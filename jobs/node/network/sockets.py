"""Sockets made in the network of a replica and used outside of it."""

from __future__ import annotations

import os
import socket
from typing import Final

from jobs.node.network.namespaces import make_inside

_NAMESPACE: Final = os.O_RDONLY | os.O_CLOEXEC


def open_socket(pid: int, family: int) -> int:
    """Return the descriptor of a new TCP socket in the network namespace of the process `pid`.

    `family` is `socket.AF_INET` or `socket.AF_INET6`.  Raises OSError, also when there is no such process.
    The caller must know that `pid` is still the process that it means, for example by holding a pidfd of it.
    """

    def make() -> list[int]:
        return [socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC).detach()]

    net = os.open(f"/proc/{pid}/ns/net", _NAMESPACE)
    try:
        user = _foreign_user_namespace(pid)
        try:
            return make_inside(user, net, make)[0]
        finally:
            if user is not None:
                os.close(user)
    finally:
        os.close(net)


def _foreign_user_namespace(pid: int) -> int | None:
    """Open the user namespace of a process; None where it is the caller's."""
    user = os.open(f"/proc/{pid}/ns/user", _NAMESPACE)
    if os.path.samestat(os.fstat(user), os.stat("/proc/self/ns/user")):  # noqa: PTH116 of what it links to
        os.close(user)
        return None
    return user
