"""The result of the last admission pass, and usage over time."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.models.clusters import Cluster
from quotas.models.limits import Quota


class QueueSnapshot(models.Model):
    """The result of the last admission pass over a cluster: its ordered queue, and what was left.

    `queue` is a list of [holder, quota, gpus, why, params], the next first; `room` a list of
    [node, amounts] that nobody holds and nothing waits for.  Written under the cluster's lock.
    """

    cluster = models.OneToOneField(Cluster, models.CASCADE, primary_key=True, related_name="standing")
    queue = models.JSONField(default=list)
    room = models.JSONField(default=list)
    decided_at = models.DateTimeField(_("decision time"), auto_now=True)

    class Meta:
        verbose_name = _("queue snapshot")
        verbose_name_plural = _("queue snapshots")

    def __str__(self) -> str:
        return f"{self.cluster_id}"


class UsageHour(models.Model):
    """A quota's usage in one whole hour, in GPU-seconds and core-seconds.

    `gpu_type` "" has the cores; made from reservations by `quotas.ledger.usage` once the hour is over.
    """

    quota = models.ForeignKey(
        Quota, models.CASCADE, related_name="usage_hours", verbose_name=_("resource quota")
    )
    hour = models.DateTimeField(_("hour"))
    gpu_type = models.CharField(_("GPU type"), max_length=64, blank=True)
    seconds = models.BigIntegerField(_("seconds held"), default=0)
    borrowed_seconds = models.BigIntegerField(_("borrowed seconds"), default=0)
    waiting = models.IntegerField(_("waiting at end of hour"), default=0)

    class Meta:
        verbose_name = _("hourly usage")
        verbose_name_plural = _("hourly usage")
        constraints = (models.UniqueConstraint(fields=("quota", "hour", "gpu_type"), name="one_usage_hour"),)
        indexes = (models.Index(fields=("hour",), name="usage_hours_by_time"),)

    def __str__(self) -> str:
        return f"{self.quota_id} {self.hour:%Y-%m-%d %H} {self.gpu_type}"


class UsageDay(models.Model):
    """A person's usage and cost in a quota on one day of the console's time zone.

    A row for each GPU type and each spec by which it was priced; "" is no GPU and no spec.  What is charged
    is stored in `cost_micro`, so that a price that changes later changes nothing here.  Made hour by hour
    from reservations by `quotas.billing.ledger_days`, which adds and never counts anew.
    """

    day = models.DateField(_("day"))
    quota = models.ForeignKey(
        Quota, models.CASCADE, related_name="usage_days", verbose_name=_("resource quota")
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("user")
    )
    gpu_type = models.CharField(_("GPU type"), max_length=64, blank=True)
    spec = models.CharField(_("spec"), max_length=100, blank=True)
    gpu_seconds = models.BigIntegerField(_("GPU-seconds"), default=0)
    core_milliseconds = models.BigIntegerField(_("core-milliseconds"), default=0)
    borrowed_seconds = models.BigIntegerField(_("borrowed GPU-seconds"), default=0)
    wait_seconds = models.BigIntegerField(_("wait time (seconds)"), default=0)
    starts = models.IntegerField(_("starts"), default=0)
    cost_micro = models.BigIntegerField(_("cost (millionths)"), default=0)

    class Meta:
        verbose_name = _("daily usage")
        verbose_name_plural = _("daily usage")
        ordering = ("-day",)
        constraints = (
            models.UniqueConstraint(
                fields=("day", "quota", "person", "gpu_type", "spec"), name="one_usage_day"
            ),
        )
        indexes = (
            models.Index(fields=("person", "day"), name="usage_of_person"),
            models.Index(fields=("quota", "day"), name="usage_of_quota"),
        )

    def __str__(self) -> str:
        return f"{self.day} {self.quota_id} {self.person_id} {self.gpu_type} {self.spec}"


class UsageMark(models.Model):
    """Until when UsageDay is complete: one row, locked by whoever goes on from there."""

    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.until:%Y-%m-%d %H:%M}"
