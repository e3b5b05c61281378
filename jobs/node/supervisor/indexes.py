"""How long each log was when: lines of `seconds bytes`, written beside it now and then."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from jobs.node.files import Folder


class Indexes:
    """The indexes of the logs in one folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}

    def note(self, names: Iterable[str]) -> bool:
        """Write down what grew of the named logs; whether anything did."""
        grown = [(name, size) for name in names if (size := self._size(name)) > self._sizes.get(name, 0)]
        for name, size in grown:
            self._append(name, f"{time.time():.3f} {size}\n")
            self._sizes[name] = size
        return bool(grown)

    def _size(self, name: str) -> int:
        try:
            return os.stat(f"{name}.output", dir_fd=self._folder.fd, follow_symlinks=False).st_size
        except FileNotFoundError:
            return 0

    def _append(self, name: str, line: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        fd = os.open(f"{name}.index", flags, 0o600, dir_fd=self._folder.fd)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)
