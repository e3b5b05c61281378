"""Commands of admins on the order of a cluster's queue.

A console admin orders the whole queue, a workspace's admin the jobs of that workspace among each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from jobs.lifecycle import transitions
from jobs.live import triggers
from jobs.models import Attempt, Event, Job
from jobs.states import LIVE, EndKind, State
from jobs.submission.access import require_queue_admin
from jobs.submission.job_control import NotWaiting, lock_queued
from quotas import audit, ledger
from quotas.access import administers
from quotas.admission import queue_snapshot
from quotas.models import Action, Quota, User

MOST_RANKED: Final = 200
"""Moving a job up or down fixes the order of all before it: of so many at most."""


class CannotReorder(Exception):
    """The job can't be moved so; `str` says why."""


def run_next(user: User, job: Job, *, why: str = "") -> bool:
    """Put a waiting job first.  Raises Forbidden, NotWaiting."""

    def change(holder: str, workspace_id: int | None) -> bool:
        ledger.rank([holder], job.cluster_id, workspace_id)
        return True

    return _reorder(user, job, "next", why, change)


def move_up(user: User, job: Job, *, why: str = "") -> bool:
    """Move a waiting job before the one ahead of it.  Raises Forbidden, NotWaiting, CannotReorder."""
    return _shift(user, job, -1, "up", why)


def move_down(user: User, job: Job, *, why: str = "") -> bool:
    """Move a waiting job behind the one that follows.  Raises Forbidden, NotWaiting, CannotReorder."""
    return _shift(user, job, 1, "down", why)


def clear_order(user: User, job: Job, *, why: str = "") -> bool:
    """Let priority and waiting time decide about a job's place again; return whether it had another one.

    Raises Forbidden, NotWaiting.
    """

    def change(holder: str, workspace_id: int | None) -> bool:
        return ledger.clear_rank(holder, whole_cluster=workspace_id is None)

    return _reorder(user, job, "usual", why, change)


def requeue(user: User, job: Job, *, why: str = "") -> bool:
    """Let a job wait anew: a waiting one at the end of its priority, a started one after it was stopped.

    Raises Forbidden, NotWaiting for a job that has ended.
    """
    require_queue_admin(user, job)
    with transaction.atomic():
        now = transitions.lock_job(job.pk)
        if State(now.state) is State.QUEUED:
            return _reorder(user, job, "anew", why, lambda holder, _workspace: ledger.wait_anew(holder))
        if State(now.state) not in LIVE:
            raise NotWaiting
        attempt = Attempt.objects.get(job=now, number=now.attempt_number)
        return transitions.want_end(now, attempt, EndKind.REQUEUE, by=user, why=why)


def _shift(user: User, job: Job, by: int, name: str, why: str) -> bool:
    def change(holder: str, workspace_id: int | None) -> bool:
        holders = _in_line(job.cluster_id, workspace_id)
        if holder not in holders:
            raise CannotReorder(_("The job is not in line yet."))
        at = holders.index(holder)
        if not 0 <= at + by < len(holders):
            return False
        if at >= MOST_RANKED:
            raise CannotReorder(
                _("Only the first %(most)s jobs can be moved one by one. Change the priority instead.")
                % {"most": MOST_RANKED}
            )
        holders[at], holders[at + by] = holders[at + by], holders[at]
        ledger.rank(holders[: max(at, at + by) + 1], job.cluster_id, workspace_id)
        return True

    return _reorder(user, job, name, why, change)


def _in_line(cluster_id: int, workspace_id: int | None) -> list[str]:
    """Return the holders in line on the cluster, the next first; of one workspace where it is given."""
    verdicts = queue_snapshot.queue_of(cluster_id).verdicts.values()
    quotas = dict(Quota.objects.filter(cluster=cluster_id).values_list("pk", "workspace_id"))
    holders = [
        each.holder
        for each in verdicts
        if each.position is not None and workspace_id in (None, quotas.get(each.quota_id))
    ]
    ranks = ledger.ranks_of(cluster_id, of_workspace=workspace_id is not None)
    return sorted(holders, key=lambda holder: -ranks.get(holder, 0))  # what no pass has seen yet counts too


def _reorder(user: User, job: Job, name: str, why: str, change: Callable[[str, int | None], bool]) -> bool:
    require_queue_admin(user, job)
    with transaction.atomic():
        now = lock_queued(job)
        workspace_id = None if administers(user) else now.workspace_id
        if not change(transitions.key_of(now.public_id, now.attempt_number), workspace_id):
            return False
        params = {"change": name, "why": why}
        transitions.record(now, Event.Kind.REORDERED, params=params, actor=user)
        audit.log(Action.UPDATE, now, details=params, actor=user, name=now.public_id)
        transitions.tell(now)
        triggers.trigger_on_commit("drain", now.cluster_id)
    return True
