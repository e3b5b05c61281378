"""Growth of elastic jobs: which may be restarted with more replicas now.

A restart loses the work since the last checkpoint: an attempt is restarted only just after it saved one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from django.utils import timezone

from jobs.backends.base import Checkpointing, Handle, Unreachable
from jobs.clusters import backend_for
from jobs.models import Attempt
from quotas import ledger
from quotas.models import Cluster

LEAST_TIME: Final = timedelta(minutes=10)
"""So long an attempt runs at least before it is restarted with more replicas."""

FRESH: Final = timedelta(minutes=1)
"""So old its newest checkpoint may be: the most work that growing loses."""


def find_growing(cluster_id: int) -> list[str]:
    """Return the keys of attempts that have fewer replicas than they want, and may be restarted now."""
    short = ledger.short_holders(cluster_id)
    if not short:
        return []
    now = timezone.now()
    attempts = list(
        Attempt.objects.filter(key__in=short, live=True, end_kind="", started_at__lte=now - LEAST_TIME)
    )
    if not attempts:
        return []
    try:
        backend = backend_for(Cluster.objects.get(pk=cluster_id))
    except Unreachable:
        return []
    if not isinstance(backend, Checkpointing):
        return []
    return [attempt.key for attempt in attempts if _has_fresh_checkpoint(backend, attempt, now)]


def _has_fresh_checkpoint(backend: Checkpointing, attempt: Attempt, now: datetime) -> bool:
    """Tell whether the attempt has saved a checkpoint itself within the last minute."""
    newest = backend.find_checkpoint(Handle(attempt.handle))
    if newest is None or attempt.started_at is None:
        return False
    saved_at = datetime.fromtimestamp(newest.saved_at, UTC)
    return saved_at >= max(attempt.started_at, now - FRESH)
