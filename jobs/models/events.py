"""Events: what happened to a job, in order."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job


class Event(models.Model):
    """Something that happened, in the past tense, written in the transaction that made it true.

    The primary key is the order; `at` is the database's time, never an engine's.
    """

    class Kind(models.TextChoices):
        SUBMITTED = "submitted", _("submitted")
        QUEUED_AGAIN = "queued_again", _("queued again")
        ADMITTED = "admitted", _("admitted")
        ACCEPTED = "accepted", _("accepted by the cluster")
        STARTED = "started", _("started")
        TASK_STARTED = "task_started", _("replica started")
        TASK_ENDED = "task_ended", _("replica ended")
        END_WANTED = "end_wanted", _("asked to end")
        END_ASKED = "end_asked", _("cluster asked to end it")
        REQUEUED = "requeued", _("started again by the cluster")
        ENDED = "ended", _("ended")
        FOUND_AGAIN = "found_again", _("found again")
        LOST = "lost", _("lost")
        LOGS_SEALED = "logs_sealed", _("logs stored")
        SHARED = "shared", _("visibility changed")
        ENTERED = "entered", _("entered")
        LEFT = "left", _("left")
        HELD = "held", _("held back")
        RELEASED = "released", _("released")
        PRIORITISED = "prioritised", _("priority changed")
        MOVED = "moved", _("moved to another quota")
        TOLD = "told", _("owner told")
        IDLE_WARNED = "idle_warned", _("warned that it is idle")
        STILL_NEEDED = "still_needed", _("said to be still needed")
        EXTENDED = "extended", _("given more time")
        NOT_EXTENDED = "not_extended", _("could not be given more time")

    job = models.ForeignKey(Job, models.CASCADE, related_name="events", verbose_name=_("job"))
    kind = models.CharField(_("what"), max_length=16, choices=Kind)
    params = models.JSONField(_("details"), default=dict)
    attempt = models.IntegerField(_("attempt"), default=1)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("by"),
    )
    at = models.DateTimeField(_("when"), db_default=Now())

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ("id",)
        indexes = (models.Index(fields=("job", "id"), name="events_of_job"),)

    def __str__(self) -> str:
        return f"{self.job_id} {self.kind}"
