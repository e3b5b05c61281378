"""A person's notifications in the console: the unread count, the list, and marking them as read."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db.models.functions import Now

from jobs.fault_tolerance.decisions import Fault
from jobs.messages.notifications import NotificationWords, notification_words
from jobs.models import Attempt, Job, Notification, NotificationEvent, Sweep
from jobs.models.kinds import Kind, level
from quotas.access import Verb, those
from quotas.models import User

COUNTED: Final = 100
"""Further unread ones are not counted."""

PAGE: Final = 50
"""Rows of a page, of which a group is one."""

MOST: Final = 500
"""Notifications of a page, those in its groups included."""

GROUPED: Final = 4
"""Length of a run of the same kind that is shown as one."""

_ALONE: Final = frozenset({Kind.MAINTENANCE, Kind.MESSAGE, Kind.CHANNEL_OFF, Kind.QUOTA, Kind.SWEEP})
"""Kinds that are never grouped."""

_WITH_LINE: Final = frozenset({Kind.FAILED, Kind.SWEEP})


@dataclass(frozen=True, slots=True)
class NotificationRow:
    """A notification as the page shows it; `job` and `sweep` are empty where the person may not see them.

    `line` is the line of the log that says why the job failed, if the person may read that.  `others` are the
    earlier ones of its group.
    """

    pk: int
    kind: str
    at: datetime
    level: str
    told: NotificationWords
    unread: bool
    job: str
    sweep: str = ""
    line: str = ""
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
    links = _find_links(person, [row.event for row in found])
    grouped = _group([_row(row, links) for row in found[:MOST]])
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


@dataclass(frozen=True, slots=True)
class _Links:
    """What the person may see of what the notifications are about, by key."""

    jobs: Mapping[int, str]
    sweeps: Collection[str]
    lines: Mapping[tuple[int, int], str]
    """The line that says why, by a failed job and the number of its attempt."""


def _find_links(person: User, events: Sequence[NotificationEvent]) -> _Links:
    seen = Job.objects.visible_to(person).filter(pk__in=[each.job_id for each in events if each.job_id])
    jobs = {job.pk: job for job in seen.only("public_id", "owner", "workspace", "visibility")}
    names = [each.params.get("sweep", "") for each in events if each.kind == Kind.SWEEP]
    sweeps = Sweep.objects.visible_to(person).filter(public_id__in=names).values_list("public_id", flat=True)
    failed = {each.job_id for each in events if each.kind in _WITH_LINE}
    readable = those(person, Verb.READ, [job for pk, job in jobs.items() if pk in failed])
    attempts = Attempt.objects.filter(job__in=readable).exclude(fault=None)
    return _Links(
        {pk: job.public_id for pk, job in jobs.items()},
        set(sweeps) if names else (),
        {
            (job, number): Fault.from_json(fault).line
            for job, number, fault in attempts.values_list("job_id", "number", "fault")
            if fault
        }
        if readable
        else {},
    )


def _row(notification: Notification, links: _Links) -> NotificationRow:
    event = notification.event
    job, attempt, sweep = event.job_id or 0, event.params.get("attempt"), event.params.get("sweep", "")
    return NotificationRow(
        pk=notification.pk,
        kind=event.kind,
        at=event.at,
        level=level(event.kind, event.params),
        told=notification_words(event.kind, event.params),
        unread=notification.read_at is None,
        job=links.jobs.get(job, ""),
        sweep=sweep if sweep in links.sweeps else "",
        line=links.lines.get((job, attempt), "") if event.kind in _WITH_LINE and attempt else "",
    )


def read(person: User, up_to: int) -> int:
    """Mark the person's notifications up to number `up_to` as read; return how many were unread."""
    new = Notification.objects.filter(person=person, read_at=None, pk__lte=up_to)
    return new.update(read_at=Now())
