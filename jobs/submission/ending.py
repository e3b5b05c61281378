"""How a job ends, and what is done about one that has: stopped, kept from ending, settled, deleted."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from jobs.lifecycle import transitions
from jobs.models import Attempt, Event, Idleness, Job
from jobs.states import END_REASON, LIVE, SETTLED, EndKind, Reason, State
from jobs.submission.rights import require, require_admin
from quotas import audit, ledger
from quotas.access import Verb
from quotas.models import Action, User

STOP_TRIES: Final = 5
"""A stop that meets a worker's change of the same job looks again, at most this often."""


class NotIdle(Exception):
    """Only what its owner was warned of can be said to be needed, and only so often."""


class NotLost(Exception):
    """Only a job that was lost can be settled by hand."""


class StillRunning(Exception):
    """Only what has ended can be deleted."""


def stop(user: User, job: Job, *, why: str = "") -> None:
    """Ask for the job's end.  A job that was never sent has ended at once; an ended one stays ended.

    Raises Forbidden.
    """
    require(user, Verb.CONTROL, job)
    kind = EndKind.USER_STOP if job.owner_id == user.pk else EndKind.ADMIN_STOP
    for _again in range(STOP_TRIES):
        try:
            with transaction.atomic():
                stop_locked(user, job, kind, why)
        except transitions.Overtaken:
            continue
        return
    raise transitions.Overtaken(job.public_id)


def stop_locked(user: User, job: Job, kind: EndKind, why: str) -> None:
    """The same inside a transaction of the caller, who has asked for the right."""
    transitions.locked(job.pk)
    job.refresh_from_db()
    attempt = Attempt.objects.get(job=job, number=job.attempt_number)
    if State(job.state) is State.QUEUED:
        transitions.want_end(job, attempt, kind, by=user, why=why)
        job.refresh_from_db()
        reason = Reason(END_REASON[kind], {"by": user.get_username()})
        transitions.end(job, attempt, State.STOPPED, reason, actor=user)
    elif State(job.state) in LIVE:
        transitions.want_end(job, attempt, kind, by=user, why=why)


def keep(user: User, job: Job) -> None:
    """Say that an idle job is still needed: its time begins anew.  Raises Forbidden, NotIdle."""
    require(user, Verb.CONTROL, job)
    with transaction.atomic():
        transitions.locked(job.pk)
        job.refresh_from_db()
        mine = Idleness.objects.filter(
            attempt__job=job,
            attempt__number=job.attempt_number,
            attempt__end_kind="",
            warned_at__isnull=False,
            kept__lt=F("extensions"),
        )
        if not job.is_idle or not mine.update(
            counts_from=Now(), warned_at=None, ends_at=None, kept=F("kept") + 1
        ):
            raise NotIdle
        transitions.record(job, Event.Kind.STILL_NEEDED, actor=user)
        transitions.tell(job)


def settle(user: User, job: Job, state: State, why: str) -> None:
    """Say how a lost job ended; what it held is free again.  For the console's admins, who made sure of it.

    Raises Forbidden, NotLost.
    """
    require_admin(user)
    with transaction.atomic():
        now = transitions.locked(job.pk)
        if State(now.state) is not State.LOST:
            raise NotLost
        attempt = Attempt.objects.get(job=now, number=now.attempt_number)
        reason = Reason(SETTLED[state], {"by": user.get_username(), "because": why})
        transitions.end(now, attempt, state, reason, actor=user)


def delete(user: User, job: Job) -> None:
    """Take an ended job off every page; the worker removes its files.  Raises Forbidden, StillRunning."""
    require(user, Verb.CONTROL, job)
    with transaction.atomic():
        gone = Job.objects.filter(
            pk=job.pk, deleted_at=None, state__in=["SUCCEEDED", "FAILED", "STOPPED", "LOST"]
        ).update(deleted_at=Now())
        if not gone:
            raise StillRunning
        for attempt in Attempt.objects.filter(job=job):
            ledger.close(attempt.key)
        audit.log(Action.DELETE, job, details={"state": job.state}, actor=user, name=job.public_id)
        transitions.tell(job)
