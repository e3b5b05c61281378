"""Frames between two processes: a length (32 bits) and so many bytes, as a packet of SFTP is."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio  # which a node has no need to load

LENGTH: Final = struct.Struct(">I")
LONGEST: Final = 8 << 20
"""A page of names."""

_AT_ONCE: Final = 1 << 18


class BrokenFrame(Exception):
    """The other side is gone, or says what is no frame."""


def encode_frame(data: bytes) -> bytes:
    """One frame."""
    return LENGTH.pack(len(data)) + data


def read_frame(read: Callable[[int], bytes], most: int = LONGEST) -> bytes:
    """The next frame from what reads at most so many bytes.  Broken at its end."""
    return _exactly(read, _length_of(_exactly(read, LENGTH.size), most))


async def read_frame_async(reader: asyncio.StreamReader) -> bytes:
    """The next frame from a stream.  Broken at its end."""
    try:
        head = await reader.readexactly(LENGTH.size)
        return await reader.readexactly(_length_of(head, LONGEST))
    except EOFError as error:
        raise BrokenFrame("cut short") from error


def write_all(fd: int, data: bytes) -> None:
    """Write all of it; OSError when nobody reads any more."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _length_of(head: bytes, most: int) -> int:
    (length,) = LENGTH.unpack(head)
    if length > most:
        raise BrokenFrame("too long")
    return int(length)


def _exactly(read: Callable[[int], bytes], count: int) -> bytes:
    parts = []
    while count:
        part = read(min(count, _AT_ONCE))
        if not part:
            raise BrokenFrame("cut short")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
