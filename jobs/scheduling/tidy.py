"""After the end: logs are stored, what is left at the engine is removed, deleted jobs disappear."""

from __future__ import annotations

import structlog
from django.db.models.functions import Now
from django.utils import timezone

from jobs import logs
from jobs.access.folders.kept import kept_until
from jobs.backends.base import Handle, Unreachable
from jobs.engines import backend_for
from jobs.faults import fault
from jobs.lifecycle import transitions
from jobs.models import Attempt, Event, Job, LogStream

log = structlog.get_logger(__name__)


def seal(attempt_id: int) -> None:
    """Store every log of an ended attempt; each log once, whatever interrupts it."""
    attempt = Attempt.objects.select_related("job").get(pk=attempt_id)
    if attempt.ended_at is None or attempt.logs_sealed_at is not None:
        return
    for stream in LogStream.objects.filter(attempt=attempt, sealed=False):
        fault("seal.before_stream")
        logs.seal(stream)
        fault("seal.after_stream")
    if Attempt.objects.filter(pk=attempt.pk, logs_sealed_at=None).update(logs_sealed_at=Now()):
        transitions.record(attempt.job, Event.Kind.LOGS_SEALED)
        transitions.tell(attempt.job)


def tidy() -> None:
    """Remove from the engines what is no longer needed, then the jobs that were deleted."""
    rows = Attempt.objects.filter(
        ended_at__isnull=False, logs_sealed_at__isnull=False, forgotten_at=None, live=False
    ).select_related("job__cluster")
    for attempt in rows.order_by("ended_at")[:200]:
        if attempt.job.deleted_at is not None or _kept_long_enough(attempt):
            _forget(attempt)
    for job in Job.objects.filter(deleted_at__isnull=False).order_by("id")[:200]:
        if not Attempt.objects.filter(job=job, forgotten_at=None).exclude(handle="").exists():
            _remove(job)


def _kept_long_enough(attempt: Attempt) -> bool:
    until = kept_until(attempt)
    return until is not None and until < timezone.now()


def _forget(attempt: Attempt) -> None:
    try:
        if attempt.handle:
            backend_for(attempt.job.cluster).forget(Handle(attempt.handle))
    except Unreachable as error:
        log.warning("forget_failed", attempt=attempt.key, error=str(error))
        return
    Attempt.objects.filter(pk=attempt.pk).update(forgotten_at=Now())


def _remove(job: Job) -> None:
    for attempt in Attempt.objects.filter(job=job):
        logs.discard(attempt)
    job.delete()
