"""A process's own command line, as the process list shows it, written anew."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ARG_START: Final = 45
"""Of the fields of /proc/<pid>/stat that follow the name; proc(5) calls it 48.  The end comes next."""


@dataclass(frozen=True, slots=True)
class Written:
    """Where the command line of this process stands in its memory, and how much room is there."""

    start: int
    room: int

    @classmethod
    def mine(cls) -> Written:
        """That of the process that asks; children made by a fork have theirs at the same place."""
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = int(fields[_ARG_START]), int(fields[_ARG_START + 1])
        return cls(start, max(0, end - start))

    def show(self, words: Sequence[str]) -> None:
        """Have the process list show these words, as far as there is room."""
        text = b"\0".join(os.fsencode(word) for word in words)[: max(0, self.room - 1)]
        ctypes.memmove(self.start, text.ljust(self.room, b"\0"), self.room)
