"""Requests for sockets in replicas' networks, as the agent of a cluster answers them.

    {"socket": {"key": …, "role": …, "index": …, "family": "AF_INET" or "AF_INET6"}}

is answered by {} and a descriptor, or by {"barrier": …, "detail": …}.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from typing import Any, Final

from jobs.node import processes
from jobs.node.network.sockets import open_socket
from jobs.node.sandbox import running_replica
from jobs.node.sandbox.running_replica import ReplicaUnavailable
from jobs.node.supervisor.layout import Layout, UnknownAttemptKey

REQUEST: Final = "socket"
FAMILIES: Final = {each.name: each for each in (socket.AF_INET, socket.AF_INET6)}

_MOST_KNOWN: Final = 1024


class SocketMaker:
    """Makes sockets for the attempts of a root; it may be called from any thread.

    A process of each replica is remembered: to look for it takes a walk through all processes.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str, int], tuple[int, int]] = {}

    def answer(self, request: Mapping[str, Any]) -> tuple[dict[str, str], list[int]]:
        """Return the answer to the request for a socket, and the descriptors to send with it."""
        try:
            key, role, index = str(request["key"]), str(request["role"]), int(request["index"])
            return {}, [self._make((key, role, index), FAMILIES[request["family"]])]
        except ReplicaUnavailable as error:
            return {"barrier": error.barrier, "detail": error.detail}, []
        except OSError as error:
            return {"barrier": "not_running", "detail": str(error)}, []
        except (UnknownAttemptKey, KeyError, ValueError, TypeError) as error:
            return {"barrier": "failed", "detail": repr(error)}, []

    def _make(self, replica: tuple[str, str, int], family: int) -> int:
        with self._lock:
            pid, held = self._find(replica)
            try:
                made = open_socket(pid, family)
                if processes.over(held):  # the number may be another process' by now
                    os.close(made)
                    raise ReplicaUnavailable("not_running")
            except BaseException:
                os.close(self._known.pop(replica)[1])
                raise
            return made

    def _find(self, replica: tuple[str, str, int]) -> tuple[int, int]:
        """Return a process of the replica, and a pidfd of it."""
        known = self._known.get(replica)
        if known is not None and not processes.over(known[1]):
            return known
        if known is not None or len(self._known) >= _MOST_KNOWN:
            self._forget()
        pid = self._find_first(replica)
        if (held := processes.hold(pid)) is None:
            raise ReplicaUnavailable("not_running")
        if self._find_first(replica) != pid:  # the number may be another process' by now
            os.close(held)
            raise ReplicaUnavailable("not_running")
        found = self._known[replica] = pid, held
        return found

    def _find_first(self, replica: tuple[str, str, int]) -> int:
        key, role, index = replica
        return running_replica.find_running(self._layout.attempt(key), role, index).first

    def _forget(self) -> None:
        for _pid, held in self._known.values():
            os.close(held)
        self._known.clear()
