"""Dumps of the stacks of a running attempt's Python processes."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.attempts import Attempt


class StackDump(models.Model):
    """A request for the stacks of all replicas of a run; a worker answers in `comparison` and `report`.

    Without `asked_by` fault tolerance requested it, because the job was silent.  `comparison` is a
    `jobs.fault_tolerance.stacks.StackComparison`.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("queued")
        RUNNING = "running", _("in progress")
        DONE = "done", _("completed")

    attempt = models.ForeignKey(
        Attempt, models.CASCADE, related_name="stack_dumps", verbose_name=_("attempt")
    )
    run = models.IntegerField(_("run"), default=1)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("by"),
    )
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.WAITING)
    comparison = models.JSONField(_("comparison"), null=True, blank=True)
    report = models.TextField(_("report"), blank=True)
    created_at = models.DateTimeField(_("created"), db_default=Now())
    begun_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("stack dump")
        verbose_name_plural = _("stack dumps")
        ordering = ("-id",)
        indexes = (models.Index(fields=("id",), condition=models.Q(ended_at=None), name="stack_dumps_open"),)

    def __str__(self) -> str:
        return f"{self.attempt_id} · {self.pk}"

    @property
    def is_over(self) -> bool:
        """Tell whether it was answered."""
        return self.state == self.State.DONE
