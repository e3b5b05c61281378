"""How both sides talk: frames of a length (32 bits) and so many bytes; the first of each side is JSON.

An answer's bytes follow in frames, and an empty one says that it is whole: an answer without it broke off.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from typing import Any, Final

LENGTH: Final = struct.Struct(">I")
LONGEST: Final = 1 << 20
"""Of the bytes of a file."""

LONGEST_WORDS: Final = 8 << 20
"""Of a frame of JSON: a page of names, or a few thousand chosen ones."""

END: Final = LENGTH.pack(0)


class Broken(Exception):
    """The other side is gone, or says what is no frame."""


def framed(data: bytes) -> bytes:
    """One frame."""
    return LENGTH.pack(len(data)) + data


def words(value: Mapping[str, Any]) -> bytes:
    """A frame of JSON; names that are no UTF-8 keep their bytes as lone surrogates."""
    return framed(json.dumps(value).encode())


def understood(data: bytes) -> dict[str, Any]:
    """The JSON of a frame.  Broken when it is none."""
    try:
        value = json.loads(data)
    except ValueError as error:
        raise Broken(str(error)) from error
    if not isinstance(value, dict):
        raise Broken("no object")
    return value


def length_of(head: bytes, most: int = LONGEST) -> int:
    """What a frame's first bytes say.  Broken when they are cut short, or promise more than `most`."""
    if len(head) < LENGTH.size:
        raise Broken("cut short")
    (length,) = LENGTH.unpack(head)
    if length > most:
        raise Broken("too long")
    return int(length)


def take(fd: int, most: int = LONGEST) -> bytes:
    """The next frame from a descriptor.  Broken at its end."""
    length = length_of(_exactly(fd, LENGTH.size), most)
    data = _exactly(fd, length)
    if len(data) < length:
        raise Broken("cut short")
    return data


def give(fd: int, data: bytes) -> None:
    """Write all of it; OSError when nobody reads any more."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _exactly(fd: int, count: int) -> bytes:
    parts = []
    while count and (part := os.read(fd, count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
