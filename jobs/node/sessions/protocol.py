"""The protocol between the console and a session agent, over a process's stdin and stdout or a connection.

A message is its kind (8 bits), its length (32 bits), so many bytes, and an end byte.  srun passes on complete
lines: so the end byte is a newline, and within a message newlines are exchanged with another byte.  JSON
messages are control messages.  STDIN goes to the program, STDOUT and STDERR come from it, and an empty one is
the end of its stream; of each at most WINDOW bytes travel before the other side says that it `took` some.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

JSON: Final = 0
STDIN: Final = 1
STDOUT: Final = 2
STDERR: Final = 3

WINDOW: Final = 512 * 1024
CHUNK: Final = 32 * 1024
MAX_MESSAGE: Final = 8 << 20
MAX_NODE_MESSAGE: Final = 2 * CHUNK

PING_S: Final = 20.0
"""The console sends something at least so often."""

SILENCE_S: Final = 90.0
"""A console that has sent nothing for so long is taken for gone."""

_HEAD: Final = struct.Struct(">BI")
_END: Final = b"\xf5"
"""A byte that UTF-8 does not use, and so a rare one."""

_SWAPPED: Final = bytes.maketrans(b"\n\xf5", b"\xf5\n")


class ProtocolError(Exception):
    """The received bytes are no valid message."""


def encode(kind: int, data: bytes) -> bytes:
    """Return a message as it is sent."""
    return (_HEAD.pack(kind, len(data)) + data + _END).translate(_SWAPPED)


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Return a JSON message as it is sent."""
    return encode(JSON, json.dumps(value).encode())


def decode_json(data: bytes) -> dict[str, Any]:
    """Return the object of a JSON message.  Raises ProtocolError."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(str(error)) from error
    if not isinstance(value, dict):
        raise ProtocolError("no object")
    return value


class MessageReader:
    """Splits received bytes into messages."""

    def __init__(self, longest: int = MAX_MESSAGE) -> None:
        self._rest, self._longest = bytearray(), longest

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the kind and data of each message that is complete now.  Raises ProtocolError."""
        self._rest += data.translate(_SWAPPED)
        while len(self._rest) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._rest)
            end = _HEAD.size + length
            if kind > STDERR or length > self._longest:
                raise ProtocolError("no message")
            if len(self._rest) <= end:
                return
            if self._rest[end : end + 1] != _END:
                raise ProtocolError("no end")
            data = bytes(self._rest[_HEAD.size : end])
            del self._rest[: end + 1]
            yield kind, data
