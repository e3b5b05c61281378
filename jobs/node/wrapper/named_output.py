"""Output of a replica's other containers: each of their lines is in its log, behind the container's name."""

from __future__ import annotations

import os
import select
from dataclasses import dataclass
from typing import Final

from jobs.node.wrapper.log_writer import LogWriter, open_pipe

_PIECE_BYTES: Final = 64 << 10
_LONGEST_LINE: Final = 64 << 10
"""A longer line becomes several."""


def prefix(name: str) -> str:
    """Return what stands before each line of the container called `name`."""
    return f"[{name}] "


@dataclass(slots=True)
class _Source:
    """One container's end of a pipe; `line` is what it wrote since its last line break."""

    name: str
    line: bytes = b""

    def add(self, piece: bytes) -> bytes:
        """Return the whole lines there are now, with the name before each."""
        *lines, self.line = (self.line + piece).split(b"\n")
        if len(self.line) >= _LONGEST_LINE:
            lines.append(self.line)
            self.line = b""
        begin = prefix(self.name).encode()
        return b"".join(begin + line + b"\n" for line in lines)


class NamedOutputs:
    """Pipes of containers, read into the replica's log; `owner` may open their ends anew."""

    def __init__(self, log: LogWriter, owner: tuple[int, int]) -> None:
        self._log, self._owner = log, owner
        self._sources: dict[int, _Source] = {}

    def open(self, name: str) -> int:
        """Return a new end to write into, which the caller closes once the container has it."""
        reader, writer = open_pipe(self._owner)
        self._sources[reader] = _Source(name)
        return writer

    def descriptors(self) -> list[int]:
        """Return the ends to be polled."""
        return list(self._sources)

    def say(self, name: str, text: str) -> None:
        """Add a line about a container."""
        self._log.add(f"{prefix(name)}{text}\n".encode())

    def pump(self, poll: select.poll) -> None:
        """Move what has come by now; an end that nobody writes into any more is closed."""
        for reader in self.descriptors():
            if not self._move(reader):
                poll.unregister(reader)
                self._close(reader)

    def finish(self, poll: select.poll) -> None:
        """Move all that dead processes have left, and close what is open."""
        for reader in self.descriptors():
            poll.unregister(reader)
            while self._move(reader, until_empty=True):
                pass
            self._close(reader)

    def _move(self, reader: int, *, until_empty: bool = False) -> bool:
        """Move a piece; False at the end of the output, or `until_empty` where nothing is there now."""
        try:
            piece = os.read(reader, _PIECE_BYTES)
        except BlockingIOError:
            return not until_empty
        if piece and (lines := self._sources[reader].add(piece)):
            self._log.add(lines)
        return bool(piece)

    def _close(self, reader: int) -> None:
        source = self._sources.pop(reader)
        if source.line:
            self._log.add(source.add(b"\n"))
        os.close(reader)
