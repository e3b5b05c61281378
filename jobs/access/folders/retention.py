"""How long what an ended job leaves is kept: its folders, and with a retention the job itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q
from django.utils import timezone

from jobs.models import Attempt, Job, JobFile
from jobs.models.retention import load_days_of
from jobs.spec import JobSpec, Reservation
from jobs.states import FINAL, State

KEEP: Final = timedelta(hours=24)
"""The folder of an ended attempt is kept this long where its workspace has no days for folders."""

KEEP_LONGER: Final = timedelta(days=30)
"""From now on, when somebody asks for it."""

_KEEP_UNDECIDED: Final = timedelta(days=7)
"""Likewise of one whose end an earlier release stored: as long as the longest that it knew (`isDebug`)."""

_RESULTS: Final = {
    "always": FINAL,
    "failed": frozenset({State.FAILED}),
    "succeeded": frozenset({State.SUCCEEDED}),
}


def decide(attempt: Attempt) -> None:
    """Write down until when the folders of an ended attempt are kept, and when its job is deleted.

    A job whose retention applies keeps the folders of all its attempts, and is deleted when it is over
    (DLC page, retention).
    """
    assert attempt.ended_at is not None
    job, spec = attempt.job, JobFile.objects.get(job_id=attempt.job_id).spec
    until = _keep(attempt.ended_at, job, spec)
    Attempt.objects.filter(pk=attempt.pk, kept_until=None).update(kept_until=until)
    if applies(spec.reserve_after, State(job.state)) and spec.reserve_after and job.ended_at:
        over = job.ended_at + timedelta(seconds=spec.reserve_after.seconds)
        Job.objects.filter(pk=job.pk, expires_at=None).update(expires_at=over)
        shorter = Q(kept_until=None) | Q(kept_until__lt=over)
        Attempt.objects.filter(shorter, job=job, forgotten_at=None).update(kept_until=over)


def extend(job: Job) -> datetime | None:
    """Keep the folders of an ended job's attempts for KEEP_LONGER from now on, but no longer than the job.

    Return until when; None where the newest attempt has not ended, or its folder is removed.
    """
    longest = timezone.now() + KEEP_LONGER
    until = min(longest, job.expires_at) if job.expires_at else longest
    mine = Attempt.objects.filter(job=job, ended_at__isnull=False, forgotten_at=None)
    if not mine.filter(number=job.attempt_number).exclude(is_over()).exists():
        return None
    mine.filter(Q(kept_until=None) | Q(kept_until__lt=until)).update(kept_until=until)
    return until


def applies(retention: Reservation | None, state: State) -> bool:
    """Tell whether a job that ended so is retained, and deleted afterwards."""
    return retention is not None and state in _RESULTS[retention.when]


def is_over() -> Q:
    """Return the condition under which an ended attempt's folders are no longer kept."""
    now = timezone.now()
    return Q(kept_until__lt=now) | Q(kept_until=None, ended_at__lt=now - _KEEP_UNDECIDED)


def kept_until(attempt: Attempt) -> datetime | None:
    """Return when the folders of an attempt are removed at the earliest; None while it has not ended."""
    if attempt.ended_at is None or attempt.kept_until is not None:
        return attempt.kept_until
    return _keep(attempt.ended_at, attempt.job, JobFile.objects.get(job_id=attempt.job_id).spec)


def _keep(ended_at: datetime, job: Job, spec: JobSpec) -> datetime:
    days = load_days_of(job.workspace_id).folders
    kept = KEEP if days is None else timedelta(days=days)
    return ended_at + max(kept, timedelta(seconds=spec.keep_failed_s))
