"""Poll interval of a cluster whose own controller schedules: the slower its answers, the longer."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now

from quotas.models import Cluster

SHARE: Final = 10
"""Polls take at most this fraction (one part in SHARE) of a controller's time."""

SILENCE_S: Final = 10.0
"""Pause after a poll without an answer."""


def interval_s(look_s: float) -> float:
    """Return the interval between the beginnings of a poll that took `look_s` and of the next."""
    return min(max(SHARE * look_s, settings.CONSOLE_SWEEP_SECONDS), settings.CONSOLE_SLOWEST_LOOK_SECONDS)


def record_poll(cluster_id: int, look_s: float) -> None:
    """Record how long a poll took, and when the next is due."""
    pause = timedelta(seconds=interval_s(look_s))
    Cluster.objects.filter(pk=cluster_id).update(look_ms=round(look_s * 1000), next_look_at=Now() + pause)


def record_failure(cluster_id: int) -> None:
    """Record that a poll had no answer."""
    pause = timedelta(seconds=min(SILENCE_S, settings.CONSOLE_SLOWEST_LOOK_SECONDS))
    Cluster.objects.filter(pk=cluster_id).update(next_look_at=Now() + pause)


def clusters_not_due() -> QuerySet[Cluster]:
    """Return the clusters whose next poll is not due yet."""
    return Cluster.objects.filter(next_look_at__gt=Now())
