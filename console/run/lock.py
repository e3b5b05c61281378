"""One console per CONSOLE_HOME: whoever runs it holds a lock, and the file says who that is."""

import fcntl
import os
from pathlib import Path


class AlreadyRunning(RuntimeError):
    """Another process runs the console of this folder; the message is one sentence."""


class Lock:
    """Held from `take` until this process ends, however it ends. Not inherited by what it starts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def take(self, url: str) -> None:
        """Take the lock and leave `url` for whoever tries next. Raises `AlreadyRunning`."""
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, _, where = os.pread(self._descriptor, 1000, 0).decode().strip().partition(" ")
            raise AlreadyRunning(
                f"It already runs at {where} (process {pid}): Ctrl-C there, or `kill {pid}`, stops it."
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()} {url}\n".encode(), 0)
