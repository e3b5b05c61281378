"""Turns at writing: threads of a process, and processes that share a database file, write one by one."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from typing import Final

POLL_S: Final = 0.001
"""Between two looks at a record lock: the system has none that waits for a limited time."""

_NEXT, _NOW = 0, 1


class WriteTurn:
    """A lock that threads and processes take in turn.

    Two bytes of a file beside the database are locked: `_NOW` by the process that writes, `_NEXT` by the one
    that waits for it.  A process that has just written finds `_NEXT` taken, and comes after it.  Both are
    record locks, which end with their process and are not inherited.
    """

    def __init__(self) -> None:
        self._threads = threading.Lock()
        self._files: dict[str, int] = {}

    def take(self, database: str, timeout_s: float) -> bool:
        """Wait for the turn at a database file; return whether it was given in time."""
        until = time.monotonic() + timeout_s
        if not self._threads.acquire(timeout=timeout_s):
            return False
        is_taken = False
        try:
            is_taken = self._take_file(self._open(database), until)
        finally:
            if not is_taken:
                self._threads.release()
        return is_taken

    def give(self, database: str) -> None:
        """Give the turn to whoever waits."""
        _unlock(self._open(database), _NOW)
        self._threads.release()

    def is_taken(self) -> bool:
        """Tell whether a thread of this process has the turn."""
        return self._threads.locked()

    def _take_file(self, file: int, until: float) -> bool:
        if not _lock(file, _NEXT, until):
            return False
        try:
            return _lock(file, _NOW, until)
        finally:
            _unlock(file, _NEXT)

    def _open(self, database: str) -> int:
        if database not in self._files:
            self._files[database] = os.open(f"{database}-turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._files[database]


def _lock(file: int, byte: int, until: float) -> bool:
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(POLL_S)
        else:
            return True


def _unlock(file: int, byte: int) -> None:
    fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)
