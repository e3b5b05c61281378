"""Kinds of notifications.  A new kind needs a label here and a sentence in `jobs.messages.notifications`."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.utils.translation import gettext_lazy as _


class Kind(models.TextChoices):
    """The values are stored, and are what webhooks call `kind`."""

    STARTED = "job.started", _("A job started")
    SUCCEEDED = "job.succeeded", _("A job succeeded")
    PARTLY = "job.partly", _("A job succeeded although tasks failed")
    FAILED = "job.failed", _("A job failed")
    STOPPED = "job.stopped", _("A job was stopped, by somebody else or by its time limit")
    PREEMPTED = "job.preempted", _("A job had to give its resources back")
    AGAIN = "job.again", _("A job runs again by itself")
    LOST = "job.lost", _("A job was lost")
    FOUND = "job.found", _("A lost job was found again")
    WAITS = "job.waits", _("A job waits for long")
    IDLE = "job.idle", _("A job does not use what it holds")
    QUOTA = "quota.nearly", _("A quota is nearly used")
    MAINTENANCE = "node.maintenance", _("Maintenance of a node or cluster")
    MESSAGE = "message", _("A message from an admin")
    CHANNEL_OFF = "channel.off", _("A channel of yours was turned off")


ALWAYS: Final = frozenset({Kind.MAINTENANCE, Kind.MESSAGE, Kind.CHANNEL_OFF})
"""Told to people by name: no rule can ask for these of others' jobs, and the page shows them in any case."""

CHOICES: Final = tuple((kind.value, kind.label) for kind in Kind if kind is not Kind.CHANNEL_OFF)
"""Kinds that a rule may name."""

ON_PAGE: Final = tuple(kind.value for kind in Kind if kind is not Kind.STARTED)
"""Kinds of everybody's page until they choose otherwise."""

SENT: Final = tuple(
    kind.value for kind in Kind if kind not in {Kind.STARTED, Kind.AGAIN, Kind.FOUND, Kind.CHANNEL_OFF}
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
        Kind.QUOTA,
        Kind.MAINTENANCE,
        Kind.MESSAGE,
    }
)


def level(kind: str) -> str:
    """Return its level: ok, info, warn or bad."""
    if kind in BAD:
        return "bad"
    if kind in WARN:
        return "warn"
    return "ok" if kind == Kind.SUCCEEDED else "info"
