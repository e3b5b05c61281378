"""Uploads in progress: files that arrive in pieces, and packs of small ones.

A file that broke off stays as far as it came, for a day, in a folder of the person's own beneath
CONSOLE_HOME; whoever goes on says from where.  Nothing counts before its SHA-256 is what was said.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.conf import settings

from jobs.assets.uploads import store
from jobs.assets.uploads.store import MIB, ContentPiece, NotTaken
from jobs.node import disk
from quotas.models import User

HEAD: Final = struct.Struct(">32sQ")
"""Before each file of a pack: the SHA-256 of its content, and how many bytes follow."""

PACK_BYTES: Final = 16 * MIB
PACKED_BYTES: Final = 4 * MIB
"""A larger file is sent by itself."""

PACKED_FILES: Final = 20_000

KEPT_SECONDS: Final = 86_400


def folder(person: User) -> Path:
    """Return the folder for the person's partial files."""
    return _around() / str(person.pk)


def _around() -> Path:
    around: Path = settings.CONSOLE_SHARED_FOLDER / "uploads" / "arriving"
    return around


def received_bytes(person: User, sha256: str) -> int:
    """How much of a file is there already."""
    with suppress(FileNotFoundError):
        return (folder(person) / sha256).stat().st_size
    return 0


def list_partial(person: User) -> dict[str, int]:
    """Every file of the person that broke off, and how much of it is there."""
    try:
        entries = list(os.scandir(folder(person)))
    except FileNotFoundError:
        return {}
    found = {}
    for entry in entries:
        with suppress(FileNotFoundError):
            found[entry.name] = entry.stat().st_size
    return found


def check_room(person: User, more: int, *, besides: str = "") -> None:
    """Raises NotTaken when the person would have more than one person may, or the disk is nearly full.

    Like logs and folders of running jobs, uploads leave half of CONSOLE_DISK_FLOOR_MIB free.
    """
    least = settings.CONSOLE_DISK_FLOOR_MIB // 2
    if least and disk.free_mib(settings.CONSOLE_SHARED_FOLDER) - more // MIB < least:
        raise NotTaken("disk_low")
    most = settings.CONSOLE_CODE_PERSON_MIB * MIB
    waiting = sum(size for name, size in list_partial(person).items() if name != besides)
    if store.used_by(person) + waiting + more > most:
        raise NotTaken("person_full", most=settings.CONSOLE_CODE_PERSON_MIB)


@dataclass(frozen=True, slots=True)
class Range:
    """The bytes that are sent: from `first` on, of a file of `size`."""

    first: int
    size: int


class Arrival:
    """A file, from one request.  Raises NotTaken."""

    def __init__(self, person: User, sha256: str, part: Range) -> None:
        most = settings.CONSOLE_CODE_FILE_MIB
        if part.size > most * MIB:
            raise NotTaken("file_large", most=most)
        check_room(person, part.size, besides=sha256)
        self._person, self._sha256, self._size = person, sha256, part.size
        folder(person).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = folder(person) / sha256
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            self.received = self._begin(part.first)
        except BaseException:
            os.close(self._fd)
            raise
        self._hash = hashlib.sha256() if part.first == 0 else None

    def _begin(self, first: int) -> int:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotTaken("busy") from None
        there = os.fstat(self._fd).st_size
        if first > there or first > self._size:
            raise NotTaken("offset", received=there)
        os.ftruncate(self._fd, first)
        os.lseek(self._fd, first, os.SEEK_SET)
        return first

    def write(self, data: bytes) -> None:
        """The next bytes."""
        if self.received + len(data) > self._size:
            self._drop()
            raise NotTaken("longer")
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        if self._hash is not None:
            self._hash.update(data)
        self.received += len(data)

    def finish(self) -> bool:
        """After the last byte of the request: whether the file is whole now.  Raises NotTaken."""
        if self.received < self._size:
            return False
        if (self._hash.hexdigest() if self._hash else self._hash_file()) != self._sha256:
            self._drop()
            raise NotTaken("hash")
        os.fsync(self._fd)
        store.keep(self._person, self.path, "blobs", [ContentPiece(self._sha256, self._size)])
        return True

    def close(self) -> None:
        """Close the file; received bytes stay."""
        os.close(self._fd)

    def _drop(self) -> None:
        self.path.unlink(missing_ok=True)
        self.received = 0

    def _hash_file(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


class Pack:
    """A pack, from one request: heads and contents, one after the other.  Raises NotTaken."""

    def __init__(self, person: User, length: int) -> None:
        if length > PACK_BYTES:
            raise NotTaken("pack_large", most=PACK_BYTES // MIB)
        check_room(person, length)
        self._person = person
        self.path = folder(person) / f"pack-{secrets.token_hex(16)}"
        self._data = bytearray()

    def write(self, data: bytes) -> None:
        """The next bytes."""
        if len(self._data) + len(data) > PACK_BYTES:
            raise NotTaken("pack_large", most=PACK_BYTES // MIB)
        self._data += data

    def finish(self) -> int:
        """After the last byte: how many files were in it."""
        pieces = list(_pieces(self._data))
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(self._data)
            file.flush()
            os.fsync(handle)
        store.keep(self._person, self.path, "packs", pieces)
        return len(pieces)

    def close(self) -> None:
        """Remove a pack that was not finished."""
        self.path.unlink(missing_ok=True)


def _pieces(data: bytearray) -> Iterator[ContentPiece]:
    at = count = 0
    view = memoryview(data)
    while at < len(data):
        if len(data) - at < HEAD.size:
            raise NotTaken("pack_cut")
        digest, size = HEAD.unpack_from(data, at)
        at += HEAD.size
        count += 1
        if count > PACKED_FILES or size > PACKED_BYTES:
            raise NotTaken("pack_large", most=PACKED_BYTES // MIB)
        if at + size > len(data):
            raise NotTaken("pack_cut")
        if hashlib.sha256(view[at : at + size]).digest() != digest:
            raise NotTaken("hash")
        yield ContentPiece(digest.hex(), size, at)
        at += size


def remove_old() -> None:
    """Remove what broke off long ago."""
    before = time.time() - KEPT_SECONDS
    for path in _around().glob("*/*"):
        with suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
