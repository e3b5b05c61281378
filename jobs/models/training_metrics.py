"""Series of numbers that jobs print while they train, and how far each log was read for them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job
from jobs.models.logs import LogStream


class TrainingSeries(models.Model):
    """A metric of a job by step; `axis` says of what kind the steps are, "" if values are only counted.

    Its points are buckets of `stride` points each, in `chunks` rows of `TrainingPoints`; the last bucket has
    `fill` points.  `base` is added to printed steps, which may begin again within a log.  It belongs to the
    first replica that printed it, and to the first `source`; `attempt` and `run` are those in which it last
    did.
    """

    class Source(models.TextChoices):
        OUTPUT = "output", _("output")
        TENSORBOARD = "tensorboard", "TensorBoard"
        MLFLOW = "mlflow", "MLflow"

    job = models.ForeignKey(Job, models.CASCADE, related_name="training_series", verbose_name=_("job"))
    name = models.CharField(_("metric"), max_length=250)
    axis = models.CharField(_("axis"), max_length=16, blank=True)
    role = models.CharField(_("role"), max_length=255)
    source = models.CharField(
        _("source"), max_length=12, choices=Source, default=Source.OUTPUT, db_default="output"
    )
    attempt = models.IntegerField(_("attempt"), default=1)
    run = models.IntegerField(_("run"), default=1)
    count = models.BigIntegerField(_("points"), default=0)
    stride = models.BigIntegerField(default=1)
    fill = models.BigIntegerField(default=0)
    chunks = models.IntegerField(default=0)
    base = models.FloatField(default=0)
    last = models.FloatField(_("last"), default=0)
    last_step = models.FloatField(_("last step"), default=0)
    minimum = models.FloatField(_("minimum"), default=0)
    minimum_step = models.FloatField(_("step of the minimum"), default=0)
    maximum = models.FloatField(_("maximum"), default=0)
    maximum_step = models.FloatField(_("step of the maximum"), default=0)
    changed_at = models.DateTimeField(_("last changed"), db_default=Now())

    class Meta:
        verbose_name = _("training metric")
        verbose_name_plural = _("training metrics")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=("job", "name", "axis"), name="one_training_series"),
        ]

    def __str__(self) -> str:
        return self.name


class TrainingPoints(models.Model):
    """A part of a series: [step, last, least, greatest value] of each bucket."""

    series = models.ForeignKey(TrainingSeries, models.CASCADE, related_name="points")
    number = models.IntegerField(default=0)
    buckets = models.JSONField(default=list)

    class Meta:
        verbose_name = _("training metric points")
        verbose_name_plural = _("training metric points")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=("series", "number"), name="one_training_points"),
        ]

    def __str__(self) -> str:
        return f"{self.series_id}/{self.number}"


class MetricsCursor(models.Model):
    """How far a log was read for metrics; without a row all of it was, or none of it is.

    Up to `scanned` a live log has no end of a line after `offset`.
    """

    stream = models.OneToOneField(LogStream, models.CASCADE, related_name="+", primary_key=True)
    offset = models.BigIntegerField(_("read bytes"), default=0)
    scanned = models.BigIntegerField(default=0)
    read_at = models.DateTimeField(_("last read"), null=True, blank=True)

    class Meta:
        verbose_name = _("metrics cursor")
        verbose_name_plural = _("metrics cursors")

    def __str__(self) -> str:
        return f"{self.stream_id}@{self.offset}"


class EventFile(models.Model):
    """A TensorBoard event file in the work folder of a log's replica, read up to `offset`.

    Names of its metrics begin with `prefix`, so that the runs of one replica don't share a series.
    """

    stream = models.ForeignKey(LogStream, models.CASCADE, related_name="+")
    path = models.CharField(_("path"), max_length=500)
    prefix = models.CharField(_("prefix"), max_length=100, blank=True)
    offset = models.BigIntegerField(_("read bytes"), default=0)

    class Meta:
        verbose_name = _("TensorBoard event file")
        verbose_name_plural = _("TensorBoard event files")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=("stream", "path"), name="one_event_file"),
        ]

    def __str__(self) -> str:
        return f"{self.path}@{self.offset}"
