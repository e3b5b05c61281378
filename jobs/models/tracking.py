"""Runs that programs of a job log by MLflow's client."""

from __future__ import annotations

import secrets
from typing import ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job


def new_run_id() -> str:
    """Return an ID as MLflow makes them."""
    return secrets.token_hex(16)


class TrackingExperiment(models.Model):
    """An experiment of a job; the one called Default needs no row."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="+", verbose_name=_("job"))
    name = models.CharField(_("name"), max_length=250)

    class Meta:
        verbose_name = _("MLflow experiment")
        verbose_name_plural = _("MLflow experiments")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=("job", "name"), name="one_tracking_experiment"),
        ]

    def __str__(self) -> str:
        return self.name


class TrackingRun(models.Model):
    """A run of a job.

    `parameters` and `tags` are texts by name, `metrics` the last `{value, timestamp, step}` of each; the
    curves are `TrainingSeries`.  Times are milliseconds since 1970 by the job's clock.
    """

    class Status(models.TextChoices):
        RUNNING = "RUNNING", _("running")
        SCHEDULED = "SCHEDULED", _("scheduled")
        FINISHED = "FINISHED", _("finished")
        FAILED = "FAILED", _("failed")
        KILLED = "KILLED", _("stopped")

    job = models.ForeignKey(Job, models.CASCADE, related_name="tracking_runs", verbose_name=_("job"))
    run_id = models.CharField(_("ID"), max_length=32, unique=True, default=new_run_id)
    experiment = models.ForeignKey(TrackingExperiment, models.CASCADE, null=True, related_name="+")
    name = models.CharField(_("name"), max_length=250)
    status = models.CharField(_("status"), max_length=9, choices=Status, default=Status.RUNNING)
    start_time = models.BigIntegerField(_("started"), default=0)
    end_time = models.BigIntegerField(_("ended"), null=True, blank=True)
    parameters = models.JSONField(_("parameters"), default=dict)
    tags = models.JSONField(_("tags"), default=dict)
    metrics = models.JSONField(_("metrics"), default=dict)
    created_at = models.DateTimeField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("MLflow run")
        verbose_name_plural = _("MLflow runs")
        ordering = ("pk",)

    def __str__(self) -> str:
        return self.name
