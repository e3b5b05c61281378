"""Encryption at rest under the newest key: the encrypted columns, and their values batch by batch.

A value that has the newest key already is left alone, so that an interrupted pass continues where it was when
it is repeated.  Rows are locked while they change: a value stored meanwhile is not overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from allauth.mfa.models import Authenticator
from django.db import models, transaction
from django.db.models.functions import Cast

from jobs.models import (
    Attempt,
    Channel,
    CodeSource,
    Dataset,
    Draft,
    DraftVersion,
    Image,
    JobSecret,
    LogSink,
    PersonalSecret,
    RamRole,
    SiteStorage,
)
from quotas import encryption
from quotas.clusters.encrypted_settings import MARK
from quotas.models import AccessKey, Cluster, Grant

BATCH: Final = 500
_TOKEN: Final = "gAAAAA"  # noqa: S105 how each of Fernet's tokens begins
_STORED: Final = "stored_value"


@dataclass(frozen=True, slots=True)
class Column:
    """A column with encrypted text, or with JSON that has such texts in it."""

    model: type[models.Model]
    name: str

    def __str__(self) -> str:
        return f"{self.model._meta.label}.{self.name}"  # noqa: SLF001 documented, despite its name

    @property
    def is_json(self) -> bool:
        """Tell whether the column has JSON."""
        field = self.model._meta.get_field(self.name)  # noqa: SLF001 documented, despite its name
        return isinstance(field, models.JSONField)

    def rows(self) -> models.QuerySet[Any]:
        """Return all rows of the model."""
        return models.QuerySet(self.model)

    def stored_values(self) -> models.QuerySet[Any, tuple[Any, Any]]:
        """Return the primary keys and stored values; fields that decrypt are bypassed."""
        rows = self.rows()
        if not self.is_json:
            rows = rows.annotate(**{_STORED: Cast(self.name, models.TextField())}).exclude(**{_STORED: ""})
        return rows.values_list("pk", self.name if self.is_json else _STORED)

    def as_stored(self, value: Any) -> Any:
        """Return a value for an update that passes over what the field does when it is stored."""
        return value if self.is_json else models.Value(value, output_field=models.TextField())


COLUMNS: Final = (
    Column(AccessKey, "ciphertext"),
    Column(Attempt, "confided"),
    Column(Attempt, "endpoint_token"),
    Column(Authenticator, "data"),
    Column(Channel, "ciphertext"),
    Column(Cluster, "config"),
    Column(CodeSource, "ciphertext"),
    Column(Dataset, "ciphertext"),
    Column(Draft, "sweep"),
    Column(Draft, "text"),
    Column(DraftVersion, "sweep"),
    Column(DraftVersion, "text"),
    Column(Grant, "refresh_token"),
    Column(Image, "ciphertext"),
    Column(JobSecret, "ciphertext"),
    Column(LogSink, "ciphertext"),
    Column(PersonalSecret, "ciphertext"),
    Column(RamRole, "ciphertext"),
    Column(SiteStorage, "ciphertext"),
)


@dataclass(slots=True)
class Progress:
    """Rows of a column that have the newest key now, and those that no key can read."""

    column: Column
    changed: int = 0
    unreadable: int = 0


def reencrypt(column: Column, batch: int = BATCH) -> Progress:
    """Encrypt a column's values under the newest key; those that no key can read stay as they are."""
    progress = Progress(column)
    last: Any = None
    while (last := _reencrypt_batch(progress, last, batch)) is not None:
        pass
    return progress


def _reencrypt_batch(progress: Progress, after: Any, batch: int) -> Any:
    """Encrypt the rows behind a primary key; return the last one's, None if there was none."""
    column = progress.column
    with transaction.atomic():
        rows = list(_rows(column, after)[:batch])
        for pk, stored in rows:
            try:
                value = _rotate(stored)
            except encryption.Unreadable:
                progress.unreadable += 1
                continue
            if value != stored:
                column.rows().filter(pk=pk).update(**{column.name: column.as_stored(value)})
                progress.changed += 1
    return rows[-1][0] if rows else None


def _rows(column: Column, after: Any) -> models.QuerySet[Any, tuple[Any, Any]]:
    """Return the primary keys and stored values behind `after`, locked."""
    rows = column.stored_values().order_by("pk").select_for_update()
    return rows if after is None else rows.filter(pk__gt=after)


def decrypt_values(value: Any) -> Iterator[str]:
    """Yield the secrets in a stored value, without those that no key can read."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from decrypt_values(each)
    elif isinstance(value, str) and value.removeprefix(MARK).startswith(_TOKEN):
        with suppress(encryption.Unreadable):
            yield encryption.decrypt(value.removeprefix(MARK))


def _rotate(value: Any) -> Any:
    """Return a stored value with its encrypted texts under the newest key.  Raises Unreadable."""
    if isinstance(value, dict):
        return {name: _rotate(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rotate(each) for each in value]
    if not isinstance(value, str):
        return value
    mark = MARK if value.startswith(MARK) else ""
    token = value.removeprefix(mark)
    return mark + encryption.rotate(token) if token.startswith(_TOKEN) else value
