"""Measured use of replicas, and idle attempts."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.attempts import Attempt, Replica
from quotas.models import Cluster


class ReplicaUsage(models.Model):
    """One replica's use as it last changed; written when it did, and now and again while it doesn't.

    `cpu_s` are its CPU seconds until `at`, from which the next look works out the rate.  `points` are
    [seconds since the epoch, percent of a GPU or null, percent of a core] of the last hour.
    """

    replica = models.OneToOneField(Replica, models.CASCADE, related_name="use", primary_key=True)
    at = models.DateTimeField(_("measured"))
    cpu_s = models.FloatField(_("CPU seconds"), default=0)
    cpu_milli = models.IntegerField(_("CPU (milli-cores)"), default=0)
    memory_mib = models.IntegerField(_("memory (MiB)"), default=0)
    gpu_percents = models.JSONField(_("GPUs (percent)"), null=True, blank=True)
    points = models.JSONField(default=list)

    class Meta:
        verbose_name = _("replica usage")
        verbose_name_plural = _("replica usage")

    def __str__(self) -> str:
        return f"{self.replica_id}"


class Idleness(models.Model):
    """An attempt that does not use what it holds, and what was done about it.

    `counts_from` is when its time began, which "I still need it" moves (`kept` counts how often); it is empty
    while the attempt is in use.  Nothing ends before `ends_at`, which the warning has told.
    """

    attempt = models.OneToOneField(Attempt, models.CASCADE, related_name="idleness", primary_key=True)
    counts_from = models.DateTimeField(_("idle time counted from"), null=True, blank=True)
    warned_at = models.DateTimeField(_("warned"), null=True, blank=True)
    ends_at = models.DateTimeField(_("ends"), null=True, blank=True)
    extensions = models.SmallIntegerField(_("extensions allowed"), default=0)
    kept = models.SmallIntegerField(_("extensions used"), default=0)

    class Meta:
        verbose_name = _("idle attempt")
        verbose_name_plural = _("idle attempts")

    def __str__(self) -> str:
        return f"{self.attempt_id}"

    @property
    def may_be_kept(self) -> bool:
        """Tell whether a person may keep it once more."""
        return self.kept < self.extensions


class LogProgress(models.Model):
    """How far the logs of a running attempt have come, for fault tolerance (`jobs.scheduling.fault_watch`).

    `sizes` has the bytes of each log by its key, and `scanned` how many of them were looked through for
    patterns; `grew_at` is when any of them last grew.
    """

    attempt = models.OneToOneField(Attempt, models.CASCADE, related_name="log_progress", primary_key=True)
    run = models.IntegerField(_("run"), default=1)
    sizes = models.JSONField(default=dict)
    scanned = models.JSONField(default=dict)
    grew_at = models.DateTimeField(_("last output"), db_default=Now())

    class Meta:
        verbose_name = _("log progress")
        verbose_name_plural = _("log progress")

    def __str__(self) -> str:
        return f"{self.attempt_id}"


class MeasuredCluster(models.Model):
    """When a cluster's jobs were last measured, and when somebody last set out to."""

    cluster = models.OneToOneField(Cluster, models.CASCADE, related_name="+", primary_key=True)
    claimed_at = models.DateTimeField(_("started"), db_default=Now())
    at = models.DateTimeField(_("measured"), null=True, blank=True)

    class Meta:
        verbose_name = _("measured cluster")
        verbose_name_plural = _("measured clusters")

    def __str__(self) -> str:
        return f"{self.cluster_id}"
