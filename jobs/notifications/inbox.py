"""A person's notifications in the console: the unread count, the list, and marking them as read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db.models.functions import Now

from jobs.messages.notifications import NotificationWords, notification_words
from jobs.models import Job, Notification
from jobs.models.kinds import Kind, level
from quotas.models import User

COUNTED: Final = 100
"""Further unread ones are not counted."""

PAGE: Final = 50
"""Rows of a page, of which a group is one."""

MOST: Final = 500
"""Notifications of a page, those in its groups included."""

GROUPED: Final = 4
"""Length of a run of the same kind that is shown as one."""

_ALONE: Final = frozenset({Kind.MAINTENANCE, Kind.MESSAGE, Kind.CHANNEL_OFF, Kind.QUOTA})
"""Kinds that are never grouped."""


@dataclass(frozen=True, slots=True)
class NotificationRow:
    """A notification as the page shows it; `job` is empty where the person may not see it.

    `others` are the earlier ones of its group.
    """

    pk: int
    kind: str
    at: datetime
    level: str
    told: NotificationWords
    unread: bool
    job: str
    others: Sequence[NotificationRow] = ()


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """One page, newest first; `older` is the number before which the next one begins, 0 for none."""

    rows: Sequence[NotificationRow]
    older: int


def unread(person: User) -> int:
    """Return how many notifications the person has not read, up to COUNTED."""
    return len(
        Notification.objects.filter(person=person, read_at=None).order_by().values_list("pk")[:COUNTED]
    )


def list_notifications(person: User, before: int = 0) -> NotificationPage:
    """Return the person's notifications older than number `before`; all of them for 0."""
    rows = Notification.objects.filter(person=person).select_related("event").order_by("-id")
    found = list((rows.filter(pk__lt=before) if before else rows)[: MOST + 1])
    jobs = [row.event.job_id for row in found if row.event.job_id]
    seen = dict(Job.objects.visible_to(person).filter(pk__in=jobs).values_list("pk", "public_id"))
    grouped = _group([_row(row, seen) for row in found[:MOST]])
    shown = grouped[:PAGE]
    is_all = len(found) <= MOST and len(grouped) <= PAGE
    return NotificationPage(shown, 0 if is_all else min(row.pk for row in (shown[-1], *shown[-1].others)))


def _group(rows: Sequence[NotificationRow]) -> list[NotificationRow]:
    """Return the rows, with each long run of one kind in one row."""
    found: list[NotificationRow] = []
    for (kind, _unread), group in itertools.groupby(rows, key=lambda row: (row.kind, row.unread)):
        alike = list(group)
        if len(alike) < GROUPED or kind in _ALONE:
            found += alike
        else:
            found.append(replace(alike[0], others=alike[1:]))
    return found


def _row(notification: Notification, jobs: dict[int, str]) -> NotificationRow:
    event = notification.event
    return NotificationRow(
        pk=notification.pk,
        kind=event.kind,
        at=event.at,
        level=level(event.kind),
        told=notification_words(event.kind, event.params),
        unread=notification.read_at is None,
        job=jobs.get(event.job_id or 0, ""),
    )


def read(person: User, up_to: int) -> int:
    """Mark the person's notifications up to number `up_to` as read; return how many were unread."""
    new = Notification.objects.filter(person=person, read_at=None, pk__lte=up_to)
    return new.update(read_at=Now())
