"""Removal of what workspaces keep no longer after a job's end: jobs, logs, events and uploaded code.

Each pass takes a few jobs of each kind, the oldest first.  Files go before their rows, and each row goes in
one transaction with its tally, so that a pass which is killed leaves nothing behind that the next one does
not find.  A deleted job is only marked here: `jobs.scheduling.cleanup` removes its files and rows, as it does
for everybody who deletes one.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import Aggregate, Count, Exists, F, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from jobs.logs import log_store, log_times
from jobs.models import (
    Attempt,
    Event,
    Job,
    LogChunk,
    LogStream,
    RetentionDays,
    RetentionKind,
    RetentionTally,
    TreeUse,
)
from jobs.models.retention import load_days
from jobs.states import FINAL
from jobs.submission import job_control
from quotas import audit
from quotas.models import Action, Workspace

log = structlog.get_logger(__name__)

BATCH: Final = 200
"""Jobs of each kind in one pass; the next one goes on."""

PASS_SECONDS: Final = 30.0

Days = Mapping[int, RetentionDays]
"""The days of each workspace, by its key."""

Counts = Mapping[int, int]
"""A number of each workspace, by its key."""


@dataclass(frozen=True, slots=True)
class RemovalEstimate:
    """What would be removed of one kind: jobs, logs, events or trees of uploaded code, and their bytes."""

    count: int = 0
    size: int = 0


def remove_due() -> bool:
    """Remove a batch of what is due, log the days that are over, and return whether more is due."""
    days, now, deadline = load_days(), timezone.now(), time.monotonic() + PASS_SECONDS
    is_more = False
    for kind, remove in _REMOVERS.items():
        jobs = list(find_due(kind, days, now).order_by("ended_at")[:BATCH])
        for number, job in enumerate(jobs, 1):
            try:
                remove(job, now.astimezone(UTC).date())
            except OSError as error:
                log.warning("removal_failed", kind=kind, job=job.public_id, error=str(error))
            if time.monotonic() > deadline:
                return number < len(jobs) or is_more
        is_more |= len(jobs) == BATCH
    log_past_days(now.astimezone(UTC).date())
    return is_more


def find_due(kind: RetentionKind, days: Days, now: datetime) -> QuerySet[Job]:
    """Return the jobs of which something of the kind is due.

    A job whose files somebody keeps, or that has a retention of its own which is not over, is none of them.
    """
    workspaces: dict[int, list[int]] = defaultdict(list)
    for key, limits in days.items():
        limit = getattr(limits, kind)
        if limit is not None:
            workspaces[limit].append(key)
    if not workspaces:
        return Job.objects.none()
    is_over = Q()
    for limit, keys in workspaces.items():
        is_over |= Q(workspace__in=keys, ended_at__lt=now - timedelta(days=limit))
    is_kept = Attempt.objects.filter(job=OuterRef("pk"), kept_until__gt=now, forgotten_at=None)
    ended = Job.objects.filter(is_over, deleted_at=None, ended_at__isnull=False, state__in=FINAL)
    due = ended.exclude(expires_at__gt=now).filter(~Exists(is_kept))
    match kind:
        case RetentionKind.LOGS:
            return due.filter(Exists(_stored_logs(attempt__job=OuterRef("pk"))))
        case RetentionKind.EVENTS:
            return due.filter(Exists(Event.objects.filter(job=OuterRef("pk"))))
        case RetentionKind.UPLOADS:
            return due.filter(Exists(TreeUse.objects.filter(job=OuterRef("pk"))))
        case _:
            return due


def estimate(days: Days, now: datetime) -> dict[int, dict[RetentionKind, RemovalEstimate]]:
    """Return what would be removed with these days, by workspace and kind; nothing counts twice.

    The bytes of jobs are those of their stored logs.  Uploaded code counts whole, although content that
    others use as well stays.
    """
    whole = find_due(RetentionKind.JOBS, days, now)
    logs, events, uploads = (
        find_due(kind, days, now).exclude(pk__in=whole.values("pk"))
        for kind in (RetentionKind.LOGS, RetentionKind.EVENTS, RetentionKind.UPLOADS)
    )
    uses = TreeUse.objects.filter(job__in=uploads)
    counted: tuple[tuple[RetentionKind, Counts, Counts], ...] = (
        (RetentionKind.JOBS, _by_workspace(whole, "workspace", Count("pk")), _log_sizes(whole)),
        (
            RetentionKind.LOGS,
            _by_workspace(_stored_logs(attempt__job__in=logs), "attempt__job__workspace", Count("pk")),
            _log_sizes(logs),
        ),
        (
            RetentionKind.EVENTS,
            _by_workspace(Event.objects.filter(job__in=events), "job__workspace", Count("pk")),
            {},
        ),
        (
            RetentionKind.UPLOADS,
            _by_workspace(uses, "job__workspace", Count("pk")),
            _by_workspace(uses, "job__workspace", Sum("tree__size")),
        ),
    )
    found: dict[int, dict[RetentionKind, RemovalEstimate]] = defaultdict(dict)
    for kind, counts, sizes in counted:
        for key, count in counts.items():
            found[key][kind] = RemovalEstimate(count, sizes.get(key, 0))
    return dict(found)


def _by_workspace(rows: QuerySet[Any], column: str, figure: Aggregate) -> Counts:
    return dict(rows.order_by().values_list(column).annotate(figure))


def _log_sizes(jobs: QuerySet[Job]) -> Counts:
    chunks = LogChunk.objects.filter(stream__attempt__job__in=jobs)
    return _by_workspace(chunks, "stream__attempt__job__workspace", Sum("length"))


def _stored_logs(**of: Any) -> QuerySet[LogStream]:
    return LogStream.objects.filter(**of, sealed=True).exclude(state=LogStream.State.GONE)


def _remove_job(job: Job, day: date) -> None:
    with transaction.atomic():
        size = LogChunk.objects.filter(stream__attempt__job=job).aggregate(size=Sum("length"))["size"] or 0
        if job_control.delete_by_policy(job):
            _count(job, day, RetentionKind.JOBS, 1, size)


def _remove_logs(job: Job, day: date) -> None:
    for stream in _stored_logs(attempt__job=job):
        log_times.discard(stream)
        with transaction.atomic():
            size = log_store.remove(stream)
            if size is not None:
                _count(job, day, RetentionKind.LOGS, 1, size)


def _remove_events(job: Job, day: date) -> None:
    with transaction.atomic():
        count, _each = Event.objects.filter(job=job).delete()
        _count(job, day, RetentionKind.EVENTS, count, 0)


def _remove_uploads(job: Job, day: date) -> None:
    """Give up the job's code: `jobs.assets.uploads.expiry` removes what nothing else uses."""
    with transaction.atomic():
        for use in TreeUse.objects.filter(job=job).select_related("tree"):
            if use.delete()[0]:
                _count(job, day, RetentionKind.UPLOADS, 1, use.tree.size)


def _count(job: Job, day: date, kind: RetentionKind, count: int, size: int) -> None:
    tally, _is_new = RetentionTally.objects.get_or_create(day=day, workspace_id=job.workspace_id, kind=kind)
    RetentionTally.objects.filter(pk=tally.pk).update(count=F("count") + count, size=F("size") + size)


_REMOVERS: Final[Mapping[RetentionKind, Callable[[Job, date], None]]] = {
    RetentionKind.JOBS: _remove_job,
    RetentionKind.LOGS: _remove_logs,
    RetentionKind.EVENTS: _remove_events,
    RetentionKind.UPLOADS: _remove_uploads,
}


def log_past_days(today: date) -> None:
    """Write one entry to the audit log for each workspace and day before `today` (UTC)."""
    over = RetentionTally.objects.filter(day__lt=today).order_by()
    for day, key in list(over.values_list("day", "workspace").distinct()):
        with transaction.atomic():
            rows = RetentionTally.objects.select_for_update().filter(day=day, workspace=key)
            removed = {row.kind: {"count": row.count, "bytes": row.size} for row in rows.order_by("kind")}
            if removed:
                details = {"day": day.isoformat(), "removed": removed}
                audit.log(Action.TIDY, Workspace.objects.get(pk=key), details=details)
                RetentionTally.objects.filter(day=day, workspace=key).delete()
