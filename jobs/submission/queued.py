"""What is done to a job that waits: held, released, put elsewhere in the queue or into another quota."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from jobs.lifecycle import transitions
from jobs.live import queue
from jobs.models import Event, Job, JobFile
from jobs.states import Reason, ReasonCode, State
from jobs.submission.asking import parts_of
from jobs.submission.rights import require, require_admin
from quotas import ledger
from quotas.access import Verb, may_submit
from quotas.admission import Shape, Waiting, snapshot
from quotas.models import Quota, User

LONGEST_REASON: Final = 500
"""Characters of the reason for a hold."""


class NotWaiting(Exception):
    """Only what waits can be held, and only what is held released."""


class ReasonMissing(Exception):
    """A hold of another person's job has no reason; `str` asks for one."""


class NoRoomThere(Exception):
    """The job can't be moved to that quota; `str` says why."""


def hold(user: User, job: Job, *, why: str = "") -> None:
    """Keep a waiting job from starting until it is released; its owner reads `why`.

    Only the owner may leave the reason out.  Raises Forbidden, ReasonMissing, NotWaiting.
    """
    require(user, Verb.CONTROL, job)
    why = why.strip()
    if not why and job.owner_id != user.pk:
        raise ReasonMissing(_("Give a reason for the hold: the owner of the job reads it."))
    _hold(user, job, ledger.hold, Event.Kind.HELD, why)


def release(user: User, job: Job) -> None:
    """Let a held job start when its turn comes; it kept its age.  Raises Forbidden, NotWaiting."""
    require(user, Verb.CONTROL, job)
    _hold(user, job, ledger.release, Event.Kind.RELEASED)


def _hold(user: User, job: Job, change: Callable[[str], bool], kind: Event.Kind, why: str = "") -> None:
    with transaction.atomic():
        transitions.locked(job.pk)
        job.refresh_from_db()
        if State(job.state) is not State.QUEUED or not change(
            transitions.key_of(job.public_id, job.attempt_number)
        ):
            raise NotWaiting
        held = kind is Event.Kind.HELD
        told = {"by": user.get_username(), "because": why or None}
        transitions.explain(job, Reason(ReasonCode.HELD, told) if held else Reason(ReasonCode.NEW))
        params = {"why": why} if why else {}
        transitions.record(job, kind, params=params, actor=user, changes={"held": (not held, held)})
        transitions.tell(job)
        queue.kick_on_commit("drain", job.cluster_id)


def prioritise(user: User, job: Job, priority: int, *, why: str = "") -> bool:
    """Let a waiting job wait with another priority; whether that changed anything.  For the console's admins.

    Raises Forbidden, NotWaiting.
    """
    require_admin(user)
    with transaction.atomic():
        now = _waiting(job)
        if not ledger.prioritise(transitions.key_of(now.public_id, now.attempt_number), priority):
            return False
        Job.objects.filter(pk=now.pk).update(priority=priority)
        params = {"before": now.priority, "after": priority, "why": why}
        transitions.record(now, Event.Kind.PRIORITISED, params=params, actor=user)
        transitions.tell(now)
        queue.kick_on_commit("drain", now.cluster_id)
    return True


def move(user: User, job: Job, quota: Quota, *, why: str = "") -> bool:
    """Let a waiting job wait in another quota of its workspace and cluster; whether that changed anything.

    Its owner needs the right to send jobs there, and the quota has to be able to hold it.  For the console's
    admins.  Raises Forbidden, NotWaiting, NoRoomThere.
    """
    require_admin(user)
    with transaction.atomic():
        now = _waiting(job)
        _check_move(now, quota)
        if not ledger.move(transitions.key_of(now.public_id, now.attempt_number), quota):
            return False
        before = now.quota.name
        Job.objects.filter(pk=now.pk).update(quota=quota)
        params = {"before": before, "after": quota.name, "why": why}
        transitions.record(now, Event.Kind.MOVED, params=params, actor=user)
        transitions.explain(now, Reason(ReasonCode.NEW))
        transitions.tell(now)
        queue.kick_on_commit("drain", now.cluster_id)
    return True


def _check_move(job: Job, quota: Quota) -> None:
    if (quota.workspace_id, quota.cluster_id) != (job.workspace_id, job.cluster_id):
        raise NoRoomThere(_("That quota is of another workspace or cluster."))
    if not quota.accepts_jobs or not may_submit(job.owner, quota.workspace_id):
        raise NoRoomThere(_("Its owner may not send jobs there."))
    shape = Shape(tuple(parts_of(JobFile.objects.get(job=job).spec)))
    request = Waiting("", quota.pk, shape, owner_id=job.owner_id)
    if snapshot.books_of(quota.cluster).never(request) is not None:
        raise NoRoomThere(_("It asks for more than that quota ever allows."))


def _waiting(job: Job) -> Job:
    """The job as it is now, locked.  Raises NotWaiting."""
    now = transitions.locked(job.pk)
    if State(now.state) is not State.QUEUED:
        raise NotWaiting
    return now
