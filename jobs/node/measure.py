"""Sizes of folders, and the budget of steps that fill them."""

from __future__ import annotations

import os
import signal
import time
from typing import Final

_ENTRY: Final = 512
"""What a file counts at least, so that a million empty ones are something too."""

_FILE_TOO_LARGE: Final = 128 + signal.SIGXFSZ

_REST: Final = 20
"""A look at a folder is followed by a pause of so many times its own length."""


class FolderTooLarge(Exception):
    """More than was allowed; the rest was not counted."""


def size(fd: int, most: int, *, until: float | None = None) -> int:
    """Bytes of all files in the opened folder, no link followed; raises TooLarge above `most`.

    OSError for a folder in it that can't be read, TimeoutError when the time (CLOCK_MONOTONIC) is up.
    """
    total = 0
    for _, folders, names, here in os.fwalk(".", dir_fd=fd, onerror=_raise):
        for name in (*folders, *names):
            total += max(_ENTRY, os.stat(name, dir_fd=here, follow_symlinks=False).st_size)
        if total > most:
            raise FolderTooLarge
        if until is not None and time.monotonic() > until:
            raise TimeoutError
    return total


def _raise(error: OSError) -> None:
    raise error


class StepBudget:
    """Ends what takes too long, or makes the folder at `path` larger than `most` bytes; `why` says which."""

    def __init__(self, seconds: float, path: str, most: int) -> None:
        self._until = time.monotonic() + seconds
        self._path, self.most = path, most
        self._look_at = 0.0
        self.why = ""
        self._words = {"time": f"not done after {seconds:g} s", "size": f"larger than {most:,} bytes"}

    @property
    def words(self) -> str:
        """Why it was ended."""
        return self._words[self.why]

    def is_spent(self) -> bool:
        """Tell whether that is so now."""
        began = time.monotonic()
        if began > self._until:
            self.why = "time"
        elif self._path and began > self._look_at:
            self.went_too_far(0)
            now = time.monotonic()
            self._look_at = now + (now - began) * _REST
        return bool(self.why)

    def went_too_far(self, code: int) -> bool:
        """Tell whether the folder is too large, or an exit code says that a file in it would have been."""
        if self._path and not self.why and (code == _FILE_TOO_LARGE or self._is_too_large()):
            self.why = "size"
        return bool(self.why)

    def _is_too_large(self) -> bool:
        fd = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            size(fd, self.most)
        except FolderTooLarge:
            return True
        except OSError:  # files come and go while somebody works there
            return False
        finally:
            os.close(fd)
        return False
