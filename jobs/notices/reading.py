"""A person's notices in the console: how many are new, which there are, and that they were read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models.functions import Now

from jobs.messages.notices import Told, notice_told
from jobs.models import Job, Notice
from jobs.notices.kinds import level
from quotas.models import User

COUNTED: Final = 100
"""More unread ones are not counted."""

PAGE: Final = 50


@dataclass(frozen=True, slots=True)
class Row:
    """A notice as the page shows it; `job` is empty where the person may not see it, or no more."""

    pk: int
    at: datetime
    level: str
    told: Told
    unread: bool
    job: str


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
    found = list((rows.filter(pk__lt=before) if before else rows)[: PAGE + 1])
    shown = found[:PAGE]
    jobs = [row.occasion.job_id for row in shown if row.occasion.job_id]
    seen = dict(Job.objects.visible_to(person).filter(pk__in=jobs).values_list("pk", "public_id"))
    return Listed([_row(row, seen) for row in shown], shown[-1].pk if len(found) > PAGE else 0)


def _row(notice: Notice, jobs: dict[int, str]) -> Row:
    occasion = notice.occasion
    return Row(
        pk=notice.pk,
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
