"""How often a cluster whose own controller schedules is looked at: the slower it answers, the more rarely."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now

from quotas.models import Cluster

SHARE: Final = 10
"""Looks take at most one part in so many of a controller's time."""

SILENCE_S: Final = 10.0
"""A controller that did not answer is asked again after so long."""


def interval_s(look_s: float) -> float:
    """How long after its beginning a look that took `look_s` is followed by the next."""
    return min(max(SHARE * look_s, settings.CONSOLE_SWEEP_SECONDS), settings.CONSOLE_SLOWEST_LOOK_SECONDS)


def looked(cluster_id: int, look_s: float) -> None:
    """Remember that a look took so long, and with it when the next is due."""
    pause = timedelta(seconds=interval_s(look_s))
    Cluster.objects.filter(pk=cluster_id).update(look_ms=round(look_s * 1000), next_look_at=Now() + pause)


def unanswered(cluster_id: int) -> None:
    """Remember that a look had no answer."""
    pause = timedelta(seconds=min(SILENCE_S, settings.CONSOLE_SLOWEST_LOOK_SECONDS))
    Cluster.objects.filter(pk=cluster_id).update(next_look_at=Now() + pause)


def resting() -> QuerySet[Cluster]:
    """The clusters whose next look is not due yet; somebody's wish may have them looked at all the same."""
    return Cluster.objects.filter(next_look_at__gt=Now())
