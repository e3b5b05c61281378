"""A person's notices in the console: how many are new, which there are, and that they were read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db.models.functions import Now

from jobs.messages.notices import Told, notice_told
from jobs.models import Job, Notice
from jobs.models.kinds import Kind, level
from quotas.models import User

COUNTED: Final = 100
"""More unread ones are not counted."""

PAGE: Final = 50
"""Rows of a page, of which a group is one."""

MOST: Final = 500
"""Notices of a page, those in its groups counted."""

GROUPED: Final = 4
"""So many in a row of the same kind are shown as one."""

_ALONE: Final = frozenset({Kind.MAINTENANCE, Kind.MESSAGE, Kind.CHANNEL_OFF, Kind.QUOTA})
"""Each of these says something of its own."""


@dataclass(frozen=True, slots=True)
class Row:
    """A notice as the page shows it; `job` is empty where the person may not see it, or no more.

    `others` are the ones before it that say the same of other jobs.
    """

    pk: int
    kind: str
    at: datetime
    level: str
    told: Told
    unread: bool
    job: str
    others: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """One page, newest first; `older` is where the next one goes on, 0 when there is none."""

    rows: Sequence[Row]
    older: int


def unread(person: User) -> int:
    """How many notices the person has not read, up to COUNTED."""
    return len(Notice.objects.filter(person=person, read_at=None).order_by().values_list("pk")[:COUNTED])


def listed(person: User, before: int = 0) -> Listed:
    """The person's notices older than number `before`; all of them for 0."""
    rows = Notice.objects.filter(person=person).select_related("occasion").order_by("-id")
    found = list((rows.filter(pk__lt=before) if before else rows)[: MOST + 1])
    jobs = [row.occasion.job_id for row in found if row.occasion.job_id]
    seen = dict(Job.objects.visible_to(person).filter(pk__in=jobs).values_list("pk", "public_id"))
    grouped = _grouped([_row(row, seen) for row in found[:MOST]])
    shown = grouped[:PAGE]
    is_all = len(found) <= MOST and len(grouped) <= PAGE
    return Listed(shown, 0 if is_all else min(row.pk for row in (shown[-1], *shown[-1].others)))


def _grouped(rows: Sequence[Row]) -> list[Row]:
    """The rows, where many of a kind that follow each other are one with the others in it."""
    found: list[Row] = []
    for (kind, _unread), group in itertools.groupby(rows, key=lambda row: (row.kind, row.unread)):
        alike = list(group)
        if len(alike) < GROUPED or kind in _ALONE:
            found += alike
        else:
            found.append(replace(alike[0], others=alike[1:]))
    return found


def _row(notice: Notice, jobs: dict[int, str]) -> Row:
    occasion = notice.occasion
    return Row(
        pk=notice.pk,
        kind=occasion.kind,
        at=occasion.at,
        level=level(occasion.kind),
        told=notice_told(occasion.kind, occasion.params),
        unread=notice.read_at is None,
        job=jobs.get(occasion.job_id or 0, ""),
    )


def read(person: User, up_to: int) -> int:
    """The person has seen everything up to notice number `up_to`; answers how many were new."""
    new = Notice.objects.filter(person=person, read_at=None, pk__lte=up_to)
    return new.update(read_at=Now())
