"""Packets of SFTP version 3, taken apart and put together: SSH's data types (RFC 4251 section 5), file
attributes, and the names of requests that the console's own client sends too.
"""

from __future__ import annotations

import os
import stat
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PROTOCOL: Final = 3
LONGEST_DATA: Final = 255 * 1024
"""Bytes of a file in one packet."""

LONGEST_REQUEST: Final = 2 << 20
"""A folder's path and a few thousand names of its entries."""

INIT, OPEN, CLOSE, READ, WRITE, MKDIR, RENAME, EXTENDED = 1, 3, 4, 5, 6, 14, 18, 200
VERSION, STATUS, HANDLE, DATA, NAME, ATTRS, EXTENDED_ANSWER = 2, 101, 102, 103, 104, 105, 201
OK, END, NO_FILE, DENIED, FAILURE, BAD_MESSAGE, UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
FOR_READING, FOR_WRITING, APPENDING, CREATED, TRUNCATED, EXCLUSIVE = 1, 2, 4, 8, 16, 32

FOLDERS: Final = b"folders@job-console"
"""The extension of a server of `jobs.node.sftp.folder_server`; its value is a `Site` as JSON."""

DESCRIBE: Final = b"describe@job-console"
"""handle → what file it is: `size`, `time`, `tag`, and its first bytes as `head`, as JSON."""

LIST: Final = b"list@job-console"
"""path, sort (`name`, `size`, `time`), downwards (a byte), offset (64 bits), limit → a page, as JSON."""

ARCHIVE: Final = b"archive@job-console"
"""path, words for what is left out (JSON), entries → a handle whose READs are a zip file, in order."""

REMOVE: Final = b"remove@job-console"
"""path, entries: remove them, folders with all that is in them."""

HAS_SIZE: Final = 0x1
HAS_OWNER: Final = 0x2
HAS_MODE: Final = 0x4
HAS_TIMES: Final = 0x8
HAS_MORE: Final = 0x8000_0000

_SIX_MONTHS_S: Final = 182 * 86400


class Malformed(ValueError):
    """Bytes that are no packet."""


class PacketReader:
    """Takes one value after the other; Malformed when there is none left."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def byte(self) -> int:
        return self._take(1)[0]

    def number(self) -> int:
        return int.from_bytes(self._take(4), "big")

    def long(self) -> int:
        return int.from_bytes(self._take(8), "big")

    def text(self) -> bytes:
        return self._take(self.number())

    def texts(self) -> list[bytes]:
        """As many as a number before them says."""
        return [self.text() for _ in range(self.number())]

    def rest(self) -> bytes:
        """All that was not taken yet."""
        return self._data[self._at :]

    def path(self) -> bytes:
        """A name; the empty one is the working folder.  Malformed with a NUL in it."""
        text = self.text()
        if b"\0" in text:
            raise Malformed("NUL in a path")
        return text or b"."

    def attributes(self) -> Attributes:
        """Return the attributes that a client wants a file to have."""
        flags = self.number()
        size = self.long() if flags & HAS_SIZE else None
        owner = (self.number(), self.number()) if flags & HAS_OWNER else None
        mode = self.number() if flags & HAS_MODE else None
        times = (self.number(), self.number()) if flags & HAS_TIMES else None
        if flags & HAS_MORE:
            for _ in range(self.number()):
                self.text(), self.text()
        return Attributes(size, owner, mode, times)

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise Malformed("too short")
        taken = self._data[self._at : end]
        self._at = end
        return taken


@dataclass(frozen=True, slots=True)
class Attributes:
    """Size in bytes, (uid, gid), mode, (access time, modification time) in seconds; None stays as it is."""

    size: int | None = None
    owner: tuple[int, int] | None = None
    mode: int | None = None
    times: tuple[int, int] | None = None


def byte(value: int) -> bytes:
    """One byte."""
    return bytes([value])


def number(value: int) -> bytes:
    """32 bits."""
    return struct.pack(">I", value & 0xFFFF_FFFF)


def long(value: int) -> bytes:
    """64 bits."""
    return struct.pack(">Q", value)


def text(value: bytes) -> bytes:
    """A string with its length before it."""
    return number(len(value)) + value


def texts(values: Sequence[bytes]) -> bytes:
    """Strings with their number before them."""
    return number(len(values)) + b"".join(map(text, values))


def status(code: int, said: str = "") -> bytes:
    """How a request went, without its number."""
    return byte(STATUS) + number(code) + text(said.encode("utf-8", "surrogateescape")) + text(b"")


def attributes(found: os.stat_result) -> bytes:
    """All that version 3 can say of a file; times after 2106 wrap around, as the format has it."""
    return b"".join(
        (
            number(HAS_SIZE | HAS_OWNER | HAS_MODE | HAS_TIMES),
            long(found.st_size),
            number(found.st_uid),
            number(found.st_gid),
            number(found.st_mode),
            number(int(found.st_atime)),
            number(int(found.st_mtime)),
        )
    )


def file_system(found: os.statvfs_result) -> bytes:
    """Encode the answer to `statvfs@openssh.com` (OpenSSH's PROTOCOL, section 4.4)."""
    values = (
        *(found.f_bsize, found.f_frsize, found.f_blocks, found.f_bfree, found.f_bavail),
        *(found.f_files, found.f_ffree, found.f_favail, 0, _flags(found), found.f_namemax),
    )
    return b"".join(map(long, values))


def _flags(found: os.statvfs_result) -> int:
    read_only, no_set_uid = 0x1, 0x2
    return (read_only if found.f_flag & os.ST_RDONLY else 0) | (
        no_set_uid if found.f_flag & os.ST_NOSUID else 0
    )


def long_name(name: bytes, found: os.stat_result) -> bytes:
    """A line as `ls -l` writes it, for people."""
    when = time.gmtime(found.st_mtime)
    old = abs(time.time() - found.st_mtime) > _SIX_MONTHS_S
    date = time.strftime("%b %e  %Y" if old else "%b %e %H:%M", when)
    mode = stat.filemode(found.st_mode)
    line = f"{mode} {found.st_nlink:4} {found.st_uid:<8} {found.st_gid:<8} {found.st_size:12} {date} "
    return line.encode() + name
