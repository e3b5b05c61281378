"""Dry runs: a cluster's check of a job that is not submitted."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from quotas.models import Cluster, Quota


class DryRun(models.Model):
    """A request whether a cluster would accept a job; a worker answers in `findings`.

    `spec_json` has names of secrets, and no values.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("queued")
        TRYING = "trying", _("in progress")
        DONE = "done", _("completed")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="+")
    quota = models.ForeignKey(Quota, models.CASCADE, related_name="+")
    spec_json = models.TextField()
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    findings = models.JSONField(default=list)
    created_at = models.DateTimeField(db_default=Now())
    begun_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("dry run")
        verbose_name_plural = _("dry runs")
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("cluster",), condition=models.Q(ended_at=None), name="dry_runs_open"),
            models.Index(fields=("owner", "-id"), name="dry_runs_of"),
        )

    def __str__(self) -> str:
        return f"{self.pk} {self.get_state_display()}"

    @property
    def is_over(self) -> bool:
        """Tell whether it was answered."""
        return self.state == self.State.DONE
