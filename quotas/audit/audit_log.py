"""Reading the audit log: by whom, about whom or what, when; as pages, as a stream, and until it is too old.

Nothing here counts rows or skips over them: every question is answered along an index, newest first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from quotas import audit
from quotas.access import Visitor, administered_by
from quotas.models import Action, AuditEntry, User
from quotas.sheets import lines

PAGE: Final = 50
PIECE: Final = 500
"""So many rows of a stream are made at a time."""

TIDIED_AT_ONCE: Final = 5000

COLUMNS: Final = (
    "time",
    "who",
    "action",
    "refused",
    "thing",
    "kind",
    "workspace",
    "way",
    "address",
    "token",
    "correlation_id",
    "changes",
    "details",
)


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A search of the audit log; empty fields match everything."""

    workspace: str = ""
    person: str = ""
    thing: str = ""
    action: str = ""
    refused: bool = False
    since: datetime | None = None
    until: datetime | None = None


def entries_of(user: Visitor, wanted: AuditFilter) -> QuerySet[AuditEntry]:
    """The rows that `user` may read: those of the workspaces they are an admin of, all for a superuser."""
    rows = AuditEntry.objects.select_related("workspace", "content_type")
    if not (isinstance(user, User) and user.is_active and user.is_superuser):
        rows = rows.filter(workspace__in=administered_by(user).values_list("pk", flat=True))
    if wanted.workspace:
        rows = rows.filter(workspace__slug=wanted.workspace)
    if wanted.person:
        rows = rows.filter(of_person(wanted.person))
    if wanted.thing:
        rows = rows.filter(object_repr=wanted.thing)
    if wanted.action:
        rows = rows.filter(action=wanted.action)
    if wanted.refused:
        rows = rows.filter(denied=True)
    if wanted.since is not None:
        rows = rows.filter(timestamp__gte=wanted.since)
    if wanted.until is not None:
        rows = rows.filter(timestamp__lt=wanted.until)
    return rows


def of_person(name: str) -> Q:
    """Match what a person did and what was about them; for a command, what it did."""
    key = User.objects.filter(username=name).values_list("pk", flat=True).first()
    return Q(actor_name=name) if key is None else Q(actor=key) | Q(person=key)


def page_of(
    rows: QuerySet[AuditEntry], before: int | None, size: int = PAGE
) -> tuple[list[AuditEntry], int | None]:
    """The next rows older than the one with the key `before`, and the key to go on with; None at the end."""
    if before is not None:
        last = AuditEntry.objects.filter(pk=before).values_list("timestamp", flat=True).first()
        if last is None:
            return [], None
        rows = rows.filter(timestamp__lte=last).filter(Q(timestamp__lt=last) | Q(pk__lt=before))
    found = list(rows.order_by("-timestamp", "-id")[: size + 1])
    return found[:size], found[size - 1].pk if len(found) > size else None


def record(entry: AuditEntry) -> dict[str, Any]:
    """A row as it is exported."""
    return {
        "time": entry.timestamp.isoformat(),
        "who": entry.actor_name,
        "action": entry.action,
        "refused": entry.denied,
        "thing": entry.object_repr,
        "kind": entry.content_type.model if entry.content_type else "",
        "workspace": entry.workspace.slug if entry.workspace else "",
        "way": entry.way,
        "address": entry.remote_addr or "",
        "token": entry.token,
        "correlation_id": entry.cid,
        "changes": entry.changes,
        "details": entry.details,
    }


def pieces(rows: QuerySet[AuditEntry], kind: str) -> Iterator[bytes]:
    """All of `rows` as CSV or as JSON lines, in pieces; holds one piece at a time."""
    if kind == "csv":
        yield lines([COLUMNS])
    before: int | None = None
    while True:
        found, before = page_of(rows, before, PIECE)
        if kind == "csv":
            yield lines(_cells(entry) for entry in found)
        else:
            yield b"".join(json.dumps(record(entry)).encode() + b"\n" for entry in found)
        if before is None:
            return


def _cells(entry: AuditEntry) -> list[str]:
    values = record(entry).values()
    return [
        json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value) for value in values
    ]


def delete_old_entries(now: datetime | None = None) -> int:
    """Remove the entries that are too old, log that, and return how many rows it was."""
    now = now or timezone.now()
    gone = 0
    for days, rows in (
        (settings.CONSOLE_AUDIT_REFUSED_DAYS, AuditEntry.objects.filter(denied=True)),
        (settings.CONSOLE_AUDIT_DAYS, AuditEntry.objects.all()),
    ):
        if days:
            gone += _forget(rows.filter(timestamp__lt=now - timedelta(days=days)))
    if gone:
        audit.log(Action.TIDY, details={"rows": gone})
    return gone


def _forget(rows: QuerySet[AuditEntry]) -> int:
    gone = 0
    while True:
        some = list(rows.order_by("timestamp").values_list("pk", flat=True)[:TIDIED_AT_ONCE])
        if not some:
            return gone
        with transaction.atomic():
            gone += AuditEntry.objects.filter(pk__in=some).forget()
