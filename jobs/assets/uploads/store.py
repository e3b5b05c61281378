"""Content in the storage of uploads, and its owners."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import Storage, storages
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from jobs.models import Blob, HeldBlob, StoredObject
from quotas.models import User

MIB: Final = 1024 * 1024
BATCH: Final = 500
"""Rows that one statement names."""

T = TypeVar("T")


class NotTaken(Exception):
    """An upload is refused; `code` is the reason, `received` the bytes that are there, `most` the limit."""

    def __init__(self, code: str, *, received: int = 0, most: int = 0) -> None:
        super().__init__(code)
        self.code, self.received, self.most = code, received, most


@dataclass(frozen=True, slots=True)
class ContentPiece:
    """Content that arrived, and its offset in the object."""

    sha256: str
    size: int
    offset: int = 0


class MovableFile(File[bytes]):
    """A file of this machine that becomes the object itself: a storage on the same disk just renames it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.open("rb"), path.name)
        self._path = path

    def temporary_file_path(self) -> str:
        """Return its path; Django's own storage looks for this."""
        return str(self._path)


def storage() -> Storage:
    """Return the storage of uploads."""
    return storages["uploads"]


def until() -> datetime:
    """Return the time until which content that is used now is kept."""
    return timezone.now() + timedelta(days=settings.CONSOLE_CODE_DAYS)


def enough() -> datetime:
    """Return the time up to which a row that is kept need not be renewed."""
    return timezone.now() + timedelta(days=settings.CONSOLE_CODE_DAYS / 2)


def batches(things: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """The things, so many at a time."""
    rest = iter(things)
    while batch := list(islice(rest, size)):
        yield batch


def store_file(path: Path, kind: str) -> StoredObject:
    """The file at `path` as a new object, under a name that says nothing and was never used before."""
    token = secrets.token_hex(20)
    stored = StoredObject.objects.create(name=f"{kind}/{token[:2]}/{token}")
    with MovableFile(path) as file:
        storage().save(stored.name, file)
    return stored


def keep(person: User, path: Path, kind: str, pieces: Sequence[ContentPiece]) -> None:
    """Move the file at `path`, in which `pieces` lie, into the storage for the person.

    Raises NotTaken.
    """
    known = set(_find_known(piece.sha256 for piece in pieces))
    new = {piece.sha256: piece for piece in pieces if piece.sha256 not in known}
    stored = store_file(path, kind) if new else None
    later = until()
    with transaction.atomic():
        if stored is not None:
            rows = [
                Blob(sha256=one.sha256, size=one.size, stored=stored, offset=one.offset, kept_until=later)
                for one in new.values()
            ]
            Blob.objects.bulk_create(rows, BATCH, ignore_conflicts=True)
        for batch in batches(sorted({piece.sha256 for piece in pieces})):
            _hold(person, batch, later)
    path.unlink(missing_ok=True)


def _hold(person: User, digests: Sequence[str], later: datetime) -> None:
    """Record that the person has the content; raises NotTaken when some was removed meanwhile."""
    rows = Blob.objects.select_for_update().filter(sha256__in=digests).order_by("pk")
    keys = list(rows.values_list("pk", flat=True))
    if len(keys) < len(digests):
        raise NotTaken("busy")
    Blob.objects.filter(pk__in=keys).update(kept_until=later)
    HeldBlob.objects.bulk_create(
        [HeldBlob(person=person, blob_id=key, kept_until=later) for key in keys],
        update_conflicts=True,
        unique_fields=["person", "blob"],
        update_fields=["kept_until"],
    )


def _find_known(digests: Iterable[str]) -> Iterator[str]:
    for batch in batches(digests):
        yield from Blob.objects.filter(sha256__in=batch).values_list("sha256", flat=True)


def used_by(person: User) -> int:
    """Bytes of everything that the person holds."""
    total = HeldBlob.objects.filter(person=person).aggregate(total=Sum("blob__size"))["total"]
    return int(total or 0)


def read(name: str) -> bytes:
    """A whole object."""
    with storage().open(name) as file:
        return bytes(file.read())


def discard(stored: StoredObject) -> None:
    """Remove an object that nothing refers to, then its row."""
    with suppress(FileNotFoundError):
        storage().delete(stored.name)
    stored.delete()
