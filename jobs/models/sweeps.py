"""Sweeps: many jobs of one file with other values, as one group."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job, new_public_id
from quotas.access import Visitor, workspaces_of
from quotas.models import Workspace


class SweepQuerySet(models.QuerySet["Sweep"]):
    """Every page and API starts at `visible_to`."""

    def visible_to(self, user: Visitor) -> Self:
        """Sweeps of the person's workspaces."""
        return self.filter(workspace__in=workspaces_of(user))


class Sweep(models.Model):
    """One group; `at_once` of its jobs may be under way at a time, and `names` are its parameters.

    `file` is the one file of all where that is a job array, with placeholders for secret values.  The best
    job has the least (`goal` "min") or greatest ("max") value of the metric `objective`.  With `stop_after`,
    a job is stopped early by the median rule from that step on, once `stop_jobs` others got as far.
    """

    class Goal(models.TextChoices):
        MIN = "min", _("least")
        MAX = "max", _("greatest")

    public_id = models.CharField(_("ID"), max_length=16, unique=True, default=new_public_id)
    name = models.CharField(_("name"), max_length=256)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="+")
    names = models.JSONField(_("parameters"), default=list)
    at_once = models.PositiveIntegerField(_("max concurrent jobs"))
    file = models.TextField(_("job file"), blank=True, default="")
    objective = models.CharField(_("objective"), max_length=250, blank=True, default="", db_default="")
    goal = models.CharField(_("goal"), max_length=3, blank=True, default="", db_default="", choices=Goal)
    stop_after = models.FloatField(_("first step of early stop"), null=True, blank=True)
    stop_jobs = models.PositiveIntegerField(_("jobs compared for early stop"), default=3, db_default=3)
    judged_at = models.DateTimeField(_("last early stop check"), null=True, blank=True)
    idempotency_key = models.CharField(max_length=255, null=True, blank=True)  # noqa: DJ001 unique with null
    request_digest = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(_("submitted"), db_default=Now())

    objects = SweepQuerySet.as_manager()

    class Meta:
        verbose_name = _("sweep")
        verbose_name_plural = _("sweeps")
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("owner", "idempotency_key"), name="one_sweep_per_key"),
        )
        indexes = (
            models.Index(
                fields=("judged_at",),
                condition=models.Q(stop_after__isnull=False),
                name="sweeps_with_early_stop",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id})"

    @property
    def is_public(self) -> bool:
        """Tell that the file is for the owner and the workspace's admins alone."""
        return False


class SweepRun(models.Model):
    """The job of one combination of values.

    Of several rounds the last counts.  One that `waits` is not its turn yet: as many as may be are under way.
    """

    sweep = models.ForeignKey(Sweep, models.CASCADE, related_name="runs")
    job = models.OneToOneField(Job, models.CASCADE, related_name="sweep_run")
    number = models.PositiveIntegerField(_("number"))
    round = models.PositiveIntegerField(_("round"), default=1)
    values = models.JSONField(_("values"), default=dict)
    waits = models.BooleanField(_("waiting"), default=False)

    class Meta:
        verbose_name = _("sweep run")
        verbose_name_plural = _("sweep runs")
        ordering = ("number", "-round")
        constraints = (
            models.UniqueConstraint(fields=("sweep", "number", "round"), name="one_job_per_round"),
        )
        indexes = (models.Index(fields=("id",), condition=models.Q(waits=True), name="sweep_runs_waiting"),)

    def __str__(self) -> str:
        return f"{self.sweep_id}-{self.number}"
