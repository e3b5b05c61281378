"""Kinds of notifications.  A new kind needs a label here and a sentence in `jobs.messages.notifications`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import models
from django.utils.translation import gettext_lazy as _


class Kind(models.TextChoices):
    """The values are stored, and are what webhooks call `kind`."""

    STARTED = "job.started", _("Job started")
    SUCCEEDED = "job.succeeded", _("Job succeeded")
    PARTLY = "job.partly", _("Job succeeded with failed replicas")
    FAILED = "job.failed", _("Job failed")
    STOPPED = "job.stopped", _("Job stopped by another user or by its time limit")
    PREEMPTED = "job.preempted", _("Job preempted")
    AGAIN = "job.again", _("Job restarted automatically")
    LOST = "job.lost", _("Job lost")
    FOUND = "job.found", _("Lost job found again")
    WAITS = "job.waits", _("Long queue time")
    IDLE = "job.idle", _("Job idle")
    ALERT = "job.alert", _("Alert of a job")
    QUOTA = "quota.nearly", _("Quota almost full")
    MAINTENANCE = "node.maintenance", _("Node or cluster maintenance")
    MESSAGE = "message", _("Message from an admin")
    CHANNEL_OFF = "channel.off", _("Notification channel turned off")
    SWEEP = "sweep.ended", _("Jobs of a sweep ended")


ALWAYS: Final = frozenset({Kind.MAINTENANCE, Kind.MESSAGE, Kind.CHANNEL_OFF})
"""Told to people by name: no rule can ask for these of others' jobs, and the page shows them in any case."""

UNCHOSEN: Final = frozenset({Kind.CHANNEL_OFF, Kind.SWEEP})
"""Kinds that no rule names: of a sweep those decide that its jobs have."""

CHOICES: Final = tuple((kind.value, kind.label) for kind in Kind if kind not in UNCHOSEN)
"""Kinds that a rule may name."""

ON_PAGE: Final = tuple(kind.value for kind in Kind if kind not in {Kind.STARTED, Kind.SWEEP})
"""Kinds of everybody's page until they choose otherwise."""

SENT: Final = tuple(
    kind.value for kind in Kind if kind not in {Kind.STARTED, Kind.AGAIN, Kind.FOUND, *UNCHOSEN}
)
"""Kinds of a new channel's rule."""

BAD: Final = frozenset({Kind.FAILED, Kind.LOST, Kind.CHANNEL_OFF})
WARN: Final = frozenset(
    {
        Kind.PARTLY,
        Kind.STOPPED,
        Kind.PREEMPTED,
        Kind.WAITS,
        Kind.IDLE,
        Kind.ALERT,
        Kind.QUOTA,
        Kind.MAINTENANCE,
        Kind.MESSAGE,
    }
)


def level(kind: str, params: Mapping[str, Any]) -> str:
    """Return the level of a notification: ok, info, warn or bad; a sweep's is bad once a job failed."""
    if kind == Kind.SWEEP:
        return "bad" if params.get("jobs_failed") else "ok"
    if kind in BAD:
        return "bad"
    if kind in WARN:
        return "warn"
    return "ok" if kind == Kind.SUCCEEDED else "info"
