"""What a terminal has shown lately, by its place in all that it ever showed."""

from __future__ import annotations

from typing import Final

MOST_BYTES: Final = 512 * 1024


class Scrollback:
    """The last bytes; `start` and `end` count all bytes before their first, and in all."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._data = bytearray()
        self.start = 0

    @property
    def end(self) -> int:
        """How many bytes there ever were."""
        return self.start + len(self._data)

    def add(self, data: bytes) -> None:
        """Forgets the oldest where there are too many, down to the end of a line if there is one."""
        self._data += data
        surplus = len(self._data) - self._most
        if surplus > 0:
            line = self._data.find(b"\n", surplus, surplus + 4096)
            surplus = surplus if line < 0 else line + 1
            del self._data[:surplus]
            self.start += surplus

    def since(self, place: int, limit: int) -> bytes:
        """At most `limit` bytes from `place`, which must not lie before `start`."""
        at = place - self.start
        return bytes(self._data[at : at + limit])
