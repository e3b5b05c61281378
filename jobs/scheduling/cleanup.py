"""Cleanup after the end: store logs, remove attempts from their backends, delete and remove jobs."""

from __future__ import annotations

from typing import Final

import structlog
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from jobs.access.folders import retention
from jobs.backends.base import Handle, Unreachable
from jobs.clusters import backend_for
from jobs.faults import fault
from jobs.lifecycle import transitions
from jobs.logs import log_store, log_times
from jobs.models import Attempt, Event, Job, LogStream
from jobs.states import TERMINAL
from jobs.submission import job_control, tensorboards

log = structlog.get_logger(__name__)

_MOST: Final = 200
"""Of each kind in one pass; the next one goes on."""


def seal(attempt_id: int) -> None:
    """Store every log of an ended attempt, each once, whatever interrupts it, and go on with TensorBoard."""
    attempt = Attempt.objects.select_related("job").get(pk=attempt_id)
    if attempt.ended_at is None or attempt.logs_sealed_at is not None:
        return
    for stream in LogStream.objects.filter(attempt=attempt, sealed=False):
        fault("seal.before_stream")
        log_times.store(stream)
        log_store.seal(stream)
        fault("seal.after_stream")
    retention.decide(attempt)
    if attempt.number == attempt.job.attempt_number and attempt.job.state in TERMINAL:
        tensorboards.show_after_end(attempt.job)
    if Attempt.objects.filter(pk=attempt.pk, logs_sealed_at=None).update(logs_sealed_at=Now()):
        transitions.record(attempt.job, Event.Kind.LOGS_SEALED)
        transitions.tell(attempt.job)


def clean_up() -> None:
    """Delete the jobs whose retention is over, and remove what is no longer needed.

    The last attempt that ran of a job that goes on is needed: with it go the job's checkpoints.
    """
    for job in Job.objects.filter(expires_at__lt=Now(), deleted_at=None).order_by("expires_at")[:_MOST]:
        job_control.delete_expired(job)
    stored = Attempt.objects.filter(
        ended_at__isnull=False, logs_sealed_at__isnull=False, forgotten_at=None, live=False
    ).select_related("job__cluster")
    later = Attempt.objects.filter(job=OuterRef("job"), number__gt=OuterRef("number")).exclude(handle="")
    unneeded = Q(job__state__in=[state.value for state in TERMINAL]) | Exists(later)
    for attempt in stored.filter(retention.is_over()).filter(unneeded).order_by("kept_until")[:_MOST]:
        _forget(attempt)
    for attempt in stored.filter(job__deleted_at__isnull=False)[:_MOST]:
        _forget(attempt)
    for job in Job.objects.filter(deleted_at__isnull=False).order_by("id")[:_MOST]:
        if not Attempt.objects.filter(job=job, forgotten_at=None).exclude(handle="").exists():
            _remove(job)


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
        for stream in LogStream.objects.filter(attempt=attempt):
            log_times.discard(stream)
        log_store.discard(attempt)
    job.delete()
