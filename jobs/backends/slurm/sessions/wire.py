"""How the console and the node's end of a session talk, over the stdin and stdout of one step of Slurm's, or
by a door.

A message is its kind (8 bits), its length (32 bits), so many bytes, and an end.  srun hands lines on as they
are complete, each by itself: so the end is a line's, and within a message it is another byte that stands for
the one that ends lines.  WORDS are JSON.  INPUT goes to the program, OUTPUT and ERRORS come from it, and an
empty one of these is the end of its stream; of each no more than WINDOW bytes travel before the other side
says that it `took` some.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

WORDS: Final = 0
INPUT: Final = 1
OUTPUT: Final = 2
ERRORS: Final = 3

WINDOW: Final = 512 * 1024
PIECE: Final = 32 * 1024
LONGEST: Final = 8 << 20
LONGEST_FROM_A_NODE: Final = 2 * PIECE

PING_S: Final = 20.0
"""The console says something at least so often."""

SILENCE_S: Final = 90.0
"""A console that has said nothing for so long is gone."""

_HEAD: Final = struct.Struct(">BI")
_END: Final = b"\xf5"
"""No byte of UTF-8, and so rarely there."""

_SWAPPED: Final = bytes.maketrans(b"\n\xf5", b"\xf5\n")


class Broken(Exception):
    """What came is no message."""


def message(kind: int, data: bytes) -> bytes:
    """One message, as it travels."""
    return (_HEAD.pack(kind, len(data)) + data + _END).translate(_SWAPPED)


def words(value: Mapping[str, Any]) -> bytes:
    """A message of JSON."""
    return message(WORDS, json.dumps(value).encode())


def understood(data: bytes) -> dict[str, Any]:
    """The JSON of a message.  Raises Broken."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Broken(str(error)) from error
    if not isinstance(value, dict):
        raise Broken("no object")
    return value


class Heard:
    """Messages, out of what has come so far."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._rest, self._longest = bytearray(), longest

    def more(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The messages that are whole now.  Raises Broken."""
        self._rest += data.translate(_SWAPPED)
        while len(self._rest) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._rest)
            end = _HEAD.size + length
            if kind > ERRORS or length > self._longest:
                raise Broken("no message")
            if len(self._rest) <= end:
                return
            if self._rest[end : end + 1] != _END:
                raise Broken("no end")
            data = bytes(self._rest[_HEAD.size : end])
            del self._rest[: end + 1]
            yield kind, data
