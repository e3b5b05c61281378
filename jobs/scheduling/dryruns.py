"""Dry runs on demand: asked on the web side as a row, answered by a worker that asks the engine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from jobs.backends.base import Tried, Trying, Unreachable
from jobs.engines import NoSuchBackend, backend_for
from jobs.lifecycle.transitions import key_of
from jobs.live import queue
from jobs.models import DryRun
from jobs.spec import JobSpec
from jobs.submission import sending
from quotas.access import may_submit
from quotas.models import Quota, User

log = structlog.get_logger(__name__)

KEPT: Final = timedelta(hours=1)
AGAIN: Final = timedelta(seconds=60)
"""Whoever began so long ago does not answer any more."""


class NotAllowed(Exception):
    """The person may not send jobs there, so nothing is tried there either."""


def ask(user: User, quota: Quota, spec: JobSpec) -> DryRun:
    """Have the job tried where it would run; what the person asked before is forgotten.

    Raises NotAllowed.
    """
    if not may_submit(user, quota.workspace_id):
        raise NotAllowed
    with transaction.atomic():
        DryRun.objects.filter(Q(owner=user) | Q(created_at__lt=timezone.now() - KEPT)).delete()
        row = DryRun.objects.create(
            owner=user, cluster_id=quota.cluster_id, quota=quota, spec_json=spec.model_dump_json()
        )
        queue.kick_on_commit("dry_run", quota.cluster_id)
    return row


def find(user: User, pk: int) -> DryRun | None:
    """The person's own, rung for again while nobody has begun: a kick may be lost."""
    row = DryRun.objects.filter(owner=user, pk=pk).first()
    if row is not None and not row.is_over:
        queue.kick("dry_run", row.cluster_id)
    return row


def answer(cluster_id: int) -> int:
    """Try whatever waits on the cluster; how many were answered."""
    due = Q(state=DryRun.State.WAITING) | Q(state=DryRun.State.TRYING, begun_at__lt=timezone.now() - AGAIN)
    answered = 0
    for row in DryRun.objects.filter(due, cluster=cluster_id).select_related(
        "quota__cluster", "quota__workspace", "owner"
    ):
        mine = DryRun.objects.filter(due, pk=row.pk).update(state=DryRun.State.TRYING, begun_at=Now())
        if mine:
            found = _tried(row)
            done = {"state": DryRun.State.DONE, "findings": found, "ended_at": Now()}
            answered += DryRun.objects.filter(pk=row.pk).update(**done)
    return answered


def _tried(row: DryRun) -> list[dict[str, Any]]:
    spec = JobSpec.model_validate_json(row.spec_json)
    try:
        backend = backend_for(row.quota.cluster)
        if not isinstance(backend, Trying):
            return [_told(Tried("unable", None))]
        asked = sending.submission(row.owner, row.quota, spec, key_of(sending.NEW, 1), sending.NEW, 1)
        return [_told(each) for each in backend.dry_run(asked)]
    except (NoSuchBackend, Unreachable) as error:
        log.warning("dry_run_unanswered", cluster=row.cluster_id, error=str(error))
        return [_told(Tried("away", False, detail=str(error)))]


def _told(tried: Tried) -> dict[str, Any]:
    reason = tried.reason and {"code": tried.reason.code, "params": dict(tried.reason.params)}
    return {"what": tried.what, "ok": tried.ok, "detail": tried.detail, "reason": reason}
