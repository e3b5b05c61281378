"""Dry runs: requested on a page as a row, answered by a worker that asks the backend."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from jobs.backends.base import DryRunCheck, Trying, Unreachable
from jobs.clusters import NoSuchBackend, backend_for
from jobs.live import triggers
from jobs.models import DryRun
from jobs.spec import JobSpec
from jobs.submission import builder
from quotas.access import may_submit
from quotas.models import Quota, User

log = structlog.get_logger(__name__)

KEPT: Final = timedelta(hours=1)
AGAIN: Final = timedelta(seconds=60)
"""A dry run that began so long ago is begun again."""


class NotAllowed(Exception):
    """The person may not submit there, so no dry run is made there either."""


def ask(user: User, quota: Quota, spec: JobSpec) -> DryRun:
    """Request a dry run of the job; the person's earlier ones are deleted.  Raises NotAllowed."""
    if not may_submit(user, quota.workspace_id):
        raise NotAllowed
    with transaction.atomic():
        DryRun.objects.filter(Q(owner=user) | Q(created_at__lt=timezone.now() - KEPT)).delete()
        row = DryRun.objects.create(
            owner=user, cluster_id=quota.cluster_id, quota=quota, spec_json=spec.model_dump_json()
        )
        triggers.trigger_on_commit("dry_run", quota.cluster_id)
    return row


def find(user: User, pk: int) -> DryRun | None:
    """Return the person's own dry run; a worker is woken again while it is open, as a wake may be lost."""
    row = DryRun.objects.filter(owner=user, pk=pk).first()
    if row is not None and not row.is_over:
        triggers.trigger("dry_run", row.cluster_id)
    return row


def answer(cluster_id: int) -> int:
    """Answer the cluster's open dry runs; return how many were answered."""
    due = Q(state=DryRun.State.WAITING) | Q(state=DryRun.State.TRYING, begun_at__lt=timezone.now() - AGAIN)
    answered = 0
    for row in DryRun.objects.filter(due, ended_at=None, cluster=cluster_id).select_related(
        "quota__cluster", "quota__workspace", "owner"
    ):
        mine = DryRun.objects.filter(due, pk=row.pk).update(state=DryRun.State.TRYING, begun_at=Now())
        if mine:
            found = _try(row)
            done = {"state": DryRun.State.DONE, "findings": found, "ended_at": Now()}
            answered += DryRun.objects.filter(pk=row.pk).update(**done)
    return answered


def _try(row: DryRun) -> list[dict[str, Any]]:
    spec = JobSpec.model_validate_json(row.spec_json)
    try:
        backend = backend_for(row.quota.cluster)
        if not isinstance(backend, Trying):
            return [_to_json(DryRunCheck("unable", None))]
        asked = builder.build_new(row.owner, row.quota, spec)
        return [_to_json(each) for each in backend.dry_run(asked)]
    except (NoSuchBackend, Unreachable) as error:
        log.warning("dry_run_unanswered", cluster=row.cluster_id, error=str(error))
        return [_to_json(DryRunCheck("away", False, detail=str(error)))]


def _to_json(tried: DryRunCheck) -> dict[str, Any]:
    reason = tried.reason and {"code": tried.reason.code, "params": dict(tried.reason.params)}
    found = {"what": tried.what, "ok": tried.ok, "detail": tried.detail, "reason": reason}
    return {**found, "pointer": tried.pointer}
