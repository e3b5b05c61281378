"""Commands on jobs that exist: stop, keep, settle, hold, move, extend, share and delete."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from datetime import datetime
from typing import Final

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from jobs.access.folders import retention
from jobs.dialects.base import Parsed
from jobs.lifecycle import transitions
from jobs.live import triggers
from jobs.messages import problem_message
from jobs.models import Attempt, Event, Idleness, Job, JobFile, Visibility
from jobs.states import END_REASON, FINAL, LIVE, SETTLED, TERMINAL, EndKind, Reason, ReasonCode, State
from jobs.submission import templates
from jobs.submission.access import require, require_admin, require_queue_admin
from jobs.submission.checks import feasibility
from jobs.submission.job_policies import find_excess
from jobs.submission.resource_requests import parts_of
from quotas import audit, ledger
from quotas.access import Verb, administers, may_submit
from quotas.admission import ResourceShape, Waiting, snapshot
from quotas.limits.job_limits import limits_for
from quotas.models import Action, Quota, User, unixnames

STOP_TRIES: Final = 5
"""Number of tries of a stop while a worker changes the same job."""


class NotIdle(Exception):
    """The owner was not warned that the job is idle, or has kept it as often as the policy allows."""


class NotLost(Exception):
    """The job is not lost: only a lost job can be settled by hand."""


class StillRunning(Exception):
    """The job has not ended: only an ended job can be deleted."""


def stop(user: User, job: Job, *, why: str = "") -> None:
    """Ask for the job's end.  A queued job ends at once; an ended one stays ended.  Raises Forbidden."""
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
    """Stop the job inside the caller's transaction; the caller has checked the right."""
    transitions.lock_job(job.pk)
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
    """Keep an idle job: its idle time begins anew.  Raises Forbidden, NotIdle."""
    require(user, Verb.CONTROL, job)
    with transaction.atomic():
        transitions.lock_job(job.pk)
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
    """Record how a lost job ended and release its resources; for the console's admins.

    Raises Forbidden, NotLost.
    """
    require_admin(user)
    with transaction.atomic():
        now = transitions.lock_job(job.pk)
        if State(now.state) is not State.LOST:
            raise NotLost
        attempt = Attempt.objects.get(job=now, number=now.attempt_number)
        reason = Reason(SETTLED[state], {"by": user.get_username(), "because": why})
        transitions.end(now, attempt, state, reason, actor=user)


def delete(user: User, job: Job) -> None:
    """Hide an ended job everywhere; a worker removes its files.  Raises Forbidden, StillRunning."""
    require(user, Verb.CONTROL, job)
    with transaction.atomic():
        if not _delete(job, TERMINAL):
            raise StillRunning
        _log_deletion(job, {}, user)


def delete_expired(job: Job) -> None:
    """Delete a job whose retention is over, as its owner asked when it was submitted."""
    with transaction.atomic():
        if _delete(job, FINAL):
            _log_deletion(job, {"expires_at": str(job.expires_at)}, None)


def delete_by_policy(job: Job) -> bool:
    """Delete a job that its workspace keeps no longer; return whether this call did.

    The audit log has one entry a day for all of them (`jobs.scheduling.removal`).
    """
    with transaction.atomic():
        return _delete(job, FINAL)


def _delete(job: Job, ended: Collection[State]) -> bool:
    """Hide a job that has ended so; return whether this call did."""
    if not Job.objects.filter(pk=job.pk, deleted_at=None, state__in=ended).update(deleted_at=Now()):
        return False
    for attempt in Attempt.objects.filter(job=job):
        ledger.close(attempt.key)
    transitions.tell(job)
    return True


def _log_deletion(job: Job, details: Mapping[str, str], actor: User | None) -> None:
    audit.log(Action.DELETE, job, details={"state": job.state, **details}, actor=actor, name=job.public_id)


LONGEST_REASON: Final = 500
"""Characters of the reason for a hold."""


class NotWaiting(Exception):
    """The job is not queued, or a job to be released is not held."""


class ReasonMissing(Exception):
    """A hold of another person's job has no reason; `str` asks for one."""


class AboveLimit(Exception):
    """The priority is above the person's limit; `str` says it."""


class CannotMove(Exception):
    """The job can't be moved to that quota; `str` says why."""


def hold(user: User, job: Job, *, why: str = "") -> None:
    """Keep a queued job from starting until it is released; its owner reads `why`.

    Only the owner may leave the reason out.  Raises Forbidden, ReasonMissing, NotWaiting.
    """
    require(user, Verb.CONTROL, job)
    why = why.strip()
    if not why and job.owner_id != user.pk:
        raise ReasonMissing(_("Enter a reason for the hold; the job owner will see it."))
    _hold(user, job, ledger.hold, Event.Kind.HELD, why)


def release(user: User, job: Job) -> None:
    """Let a held job start when its turn comes; it keeps its age.  Raises Forbidden, NotWaiting."""
    require(user, Verb.CONTROL, job)
    _hold(user, job, ledger.release, Event.Kind.RELEASED)


def _hold(user: User, job: Job, change: Callable[[str], bool], kind: Event.Kind, why: str = "") -> None:
    with transaction.atomic():
        now = lock_queued(job)
        if not change(transitions.key_of(now.public_id, now.attempt_number)):
            raise NotWaiting
        held = kind is Event.Kind.HELD
        reason = {"by": user.get_username(), "because": why or None}
        transitions.explain(now, Reason(ReasonCode.HELD, reason) if held else Reason(ReasonCode.NEW))
        params = {"why": why} if why else {}
        transitions.record(now, kind, params=params, actor=user, changes={"held": (not held, held)})
        _announce(now)


def prioritise(user: User, job: Job, priority: int, *, why: str = "") -> bool:
    """Change a queued job's priority; return whether it differs.

    For the console's admins, and for those of its workspace up to their own limit.  Raises Forbidden,
    AboveLimit, NotWaiting.
    """
    require_queue_admin(user, job)
    most = None if administers(user) else limits_for(user, job.quota).number("highest_priority")
    if most is not None and priority > most:
        raise AboveLimit(
            _("Priority %(wanted)s is above your limit of %(limit)s in quota %(quota)s.")
            % {"wanted": priority, "limit": most, "quota": job.quota.title}
        )
    with transaction.atomic():
        now = lock_queued(job)
        if not ledger.prioritise(transitions.key_of(now.public_id, now.attempt_number), priority):
            return False
        Job.objects.filter(pk=now.pk).update(priority=priority)
        params = {"before": now.priority, "after": priority, "why": why}
        transitions.record(now, Event.Kind.PRIORITISED, params=params, actor=user)
        changes = {"priority": (now.priority, priority)}
        audit.log(Action.UPDATE, now, changes=changes, details=params, actor=user, name=now.public_id)
        _announce(now)
    return True


def move(user: User, job: Job, quota: Quota, *, why: str = "") -> bool:
    """Move a queued job to another quota of its workspace; return whether it differs.

    Its owner needs the right to send jobs there, and the quota has to be able to hold it.  On another cluster
    the job has to be one that this cluster runs, and its owner's limits there hold.  For the console's admins
    and those of the workspace.  Raises Forbidden, NotWaiting, CannotMove.
    """
    require_queue_admin(user, job)
    with ExitStack() as locks:
        for cluster_id in sorted({job.cluster_id, quota.cluster_id}):
            locks.enter_context(ledger.lock_cluster(cluster_id))
        now = lock_queued(job)
        _check_move(user, now, quota)
        if not ledger.move(transitions.key_of(now.public_id, now.attempt_number), quota):
            return False
        before, source_id = now.quota.name, now.cluster_id
        Job.objects.filter(pk=now.pk).update(quota=quota, cluster=quota.cluster)
        now.refresh_from_db()
        params = {"before": before, "after": quota.name, "why": why}
        transitions.record(now, Event.Kind.MOVED, params=params, actor=user)
        changes = {"quota": (before, quota.name)}
        audit.log(Action.UPDATE, now, changes=changes, details=params, actor=user, name=now.public_id)
        transitions.explain(now, Reason(ReasonCode.NEW))
        _announce(now)
        triggers.trigger_on_commit("drain", source_id)
    return True


def _check_move(user: User, job: Job, quota: Quota) -> None:
    if quota.workspace_id != job.workspace_id:
        raise CannotMove(_("The quota belongs to another workspace."))
    if not quota.accepts_jobs or not quota.cluster.enabled or not may_submit(job.owner, quota.workspace_id):
        raise CannotMove(_("The job's owner can't submit jobs to that quota."))
    spec = JobFile.objects.get(job=job).spec
    if quota.cluster_id != job.cluster_id:
        if unixnames.needs_unix_name(quota.cluster) and not job.owner.unix_name:
            raise CannotMove(_("The job's owner has no UNIX name on that cluster."))
        if never := feasibility.problems(job.owner, quota, Parsed(spec)):
            raise CannotMove(problem_message(never[0]))
    if not administers(user) and (excess := find_excess(job.owner, quota, spec, jobs=0)):
        raise CannotMove(problem_message(excess[0]))
    request = Waiting("", quota.pk, ResourceShape(tuple(parts_of(spec))), owner_id=job.owner_id)
    if snapshot.load_quota_usage(quota.cluster).never(request) is not None:
        raise CannotMove(_("The job requests more than that quota allows."))


def lock_queued(job: Job) -> Job:
    """Return the queued job as it is now, locked.  Raises NotWaiting."""
    now = transitions.lock_job(job.pk)
    if State(now.state) is not State.QUEUED:
        raise NotWaiting
    return now


def _announce(job: Job) -> None:
    """Tell the job's watchers, and have its queue decided about again, after the commit."""
    transitions.tell(job)
    triggers.trigger_on_commit("drain", job.cluster_id)


HOUR_S: Final = 3600
MOST_S: Final = 168 * HOUR_S
"""In all, where the template does not say."""


class FilesRemoved(Exception):
    """The job's folders are removed, or the job has not ended."""


class NotExtended(Exception):
    """The job is not interactive or not running, or the limit of its template or quota is reached."""


def left_s(user: User, job: Job) -> int:
    """Return how many seconds its owner may still add; 0 for anybody else."""
    if job.owner_id != user.pk or State(job.state) is not State.RUNNING:
        return 0
    limit = JobFile.objects.get(job=job).spec.time_limit_s
    attempt = Attempt.objects.filter(job=job, number=job.attempt_number, end_kind="").first()
    if limit is None or attempt is None:
        return 0
    most = limits_for(user, job.quota).number("time_limit_minutes")
    longest = _most_s(job) if most is None else min(_most_s(job), 60 * most)
    return max(0, longest - limit - attempt.extended_s)


def limit_s(job: Job, declared: int | None) -> int | None:
    """Return the time limit of its attempt in seconds, with what was added."""
    if declared is None:
        return None
    added = Attempt.objects.filter(job=job, number=job.attempt_number).values_list("extended_s", flat=True)
    return declared + (added.first() or 0)


def _most_s(job: Job) -> int:
    """Return the longest time that its template allows; 0 for a job that is not interactive."""
    chosen = templates.source_of(job)
    if chosen is None or not chosen.template.interactive:
        return 0
    limits = (each.most * each.times for each in chosen.template.parameters if "time_limit_s" in each.fills)
    return next(limits, MOST_S)


def extend(user: User, job: Job, seconds: int = HOUR_S) -> None:
    """Extend the time limit of the owner's running job.

    The seconds are noted at the attempt; a worker tells the backend, and takes them back where it can't
    extend. Raises NotExtended.
    """
    with transaction.atomic():
        now = transitions.lock_job(job.pk)
        if left_s(user, now) < seconds or (now.gpus and snapshot.hours_are_gone(now.quota)):
            raise NotExtended
        mine = Attempt.objects.filter(job=now, number=now.attempt_number, end_kind="", ended_at=None)
        if not mine.update(extended_s=F("extended_s") + seconds):
            raise NotExtended
        ledger.declare_more(transitions.key_of(now.public_id, now.attempt_number), seconds)
        transitions.record(now, Event.Kind.EXTENDED, params={"seconds": seconds}, actor=user)
        transitions.tell(now)
        triggers.trigger_on_commit("observe", now.cluster_id)


def keep_files(user: User, job: Job) -> datetime:
    """Keep the ended job's folders longer; return until when.  Raises Forbidden, FilesRemoved."""
    require(user, Verb.CONTROL, job)
    with transaction.atomic():
        until = retention.extend(job)
        if until is None:
            raise FilesRemoved
        changes = {"kept_until": ("", until.isoformat())}
        audit.log(Action.UPDATE, job, changes=changes, actor=user, name=job.public_id)
    return until


def share(user: User, job: Job, visibility: Visibility) -> None:
    """Open the job to its workspace, or close it.  Raises Forbidden."""
    require(user, Verb.CONTROL, job)
    with transaction.atomic():
        Job.objects.filter(pk=job.pk).update(visibility=visibility)
        transitions.record(
            job,
            Event.Kind.SHARED,
            params={"visibility": visibility},
            actor=user,
            changes={"visibility": (job.visibility, visibility)},
        )
        transitions.tell(job)
