"""Measured use of replicas, and idle attempts."""

from __future__ import annotations

from typing import NamedTuple

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.attempts import Attempt, Replica
from quotas.models import Cluster


class Sample(NamedTuple):
    """The use of a replica until `at`, in seconds since the epoch, from the sample before on.

    `gpu` is the busiest GPU's use in percent, `cpu` is in percent of a core, each None where unknown;
    `memory_mib` is the most that was seen, None in samples of earlier releases.  Disk and network are in MiB
    a second, None where they are unknown.
    """

    at: float
    gpu: float | None
    cpu: float | None
    memory_mib: float | None = None
    disk_read: float | None = None
    disk_written: float | None = None
    received: float | None = None
    sent: float | None = None


class ReplicaUsage(models.Model):
    """One replica's use as it last changed; written when it did, and now and again while it doesn't.

    `cpu_s` are its CPU seconds until `at`, from which the next look works out the rate.  `points` are the
    samples of the whole run, fewer and longer ones as it goes on.  `transferred` are the bytes read from and
    written to disks, received and sent until `at`, each null where that is unknown.
    """

    replica = models.OneToOneField(Replica, models.CASCADE, related_name="use", primary_key=True)
    at = models.DateTimeField(_("measured"))
    cpu_s = models.FloatField(_("CPU seconds"), default=0, null=True)
    cpu_milli = models.IntegerField(_("CPU (milli-cores)"), default=0, null=True)
    memory_mib = models.IntegerField(_("memory (MiB)"), default=0, null=True)
    gpu_percents = models.JSONField(_("GPUs (percent)"), null=True, blank=True)
    transferred = models.JSONField(_("disk and network (bytes)"), null=True, blank=True)
    points = models.JSONField(default=list)

    class Meta:
        verbose_name = _("replica usage")
        verbose_name_plural = _("replica usage")

    def __str__(self) -> str:
        return f"{self.replica_id}"

    @property
    def samples(self) -> list[Sample]:
        """Return the samples of the whole run, the oldest first."""
        found = [Sample(*point) for point in self.points]
        if found and found[-1].memory_mib is None:
            found[-1] = found[-1]._replace(memory_mib=self.memory_mib)
        return found


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


class MetricAlert(models.Model):
    """A job's alert whose condition holds since then, and when its owner was told."""

    attempt = models.OneToOneField(Attempt, models.CASCADE, related_name="+", primary_key=True)
    since = models.DateTimeField(_("since"))
    told_at = models.DateTimeField(_("notified"), null=True, blank=True)

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")

    def __str__(self) -> str:
        return f"{self.attempt_id}"


class LogProgress(models.Model):
    """How far the logs of a running attempt have come, for fault tolerance (`jobs.scheduling.fault_watch`).

    `sizes` has the bytes of each log by its key, and `scanned` how many of them were looked through for
    patterns and steps; `grew_at` is when any of them last grew.  `steps` has the newest step times of each
    log (`jobs.fault_tolerance.stragglers`).
    """

    attempt = models.OneToOneField(Attempt, models.CASCADE, related_name="log_progress", primary_key=True)
    run = models.IntegerField(_("run"), default=1)
    sizes = models.JSONField(default=dict)
    scanned = models.JSONField(default=dict)
    steps = models.JSONField(default=dict)
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
