"""External jobs: those that were not submitted here."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.access import Visitor, administers, workspaces_of
from quotas.models import Cluster, Quota


class ExternalJobQuerySet(models.QuerySet["ExternalJob"]):
    """Every page starts at `visible_to`."""

    def visible_to(self, user: Visitor) -> Self:
        """Those of the clusters on which one of the person's workspaces has a quota; all for a superuser."""
        if administers(user):
            return self.all()
        quotas = Quota.objects.filter(workspace__in=workspaces_of(user))
        return self.filter(cluster__in=quotas.values("cluster"))


class ExternalJob(models.Model):
    """A job that waits or runs on a cluster and was not submitted here, as the last inventory told it.

    It can only be looked at.  `number`, `reason` and `partition` are the engine's words, `user` is a UNIX
    name, `output` the file that the job says it writes to; the size is that of the whole job.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="+")
    number = models.CharField(_("number"), max_length=100)
    name = models.CharField(_("name"), max_length=256)
    user = models.CharField(_("user"), max_length=64)
    partition = models.CharField(_("partition"), max_length=64, blank=True)
    running = models.BooleanField(_("runs"))
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    cpu_milli = models.BigIntegerField(_("CPU (milli-cores)"), default=0)
    memory_mib = models.BigIntegerField(_("memory (MiB)"), default=0)
    gpus = models.JSONField(_("GPUs by type"), default=dict, blank=True)
    nodes = models.JSONField(_("nodes"), default=list, blank=True)
    submitted_at = models.DateTimeField(_("submitted"), null=True, blank=True)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ends_at = models.DateTimeField(_("latest end"), null=True, blank=True)
    output = models.CharField(_("log"), max_length=1000, blank=True)

    objects = ExternalJobQuerySet.as_manager()

    class Meta:
        verbose_name = _("external job")
        verbose_name_plural = _("external jobs")
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(fields=("cluster", "number"), name="one_other_job"),)
        indexes = (models.Index(fields=("cluster", "running", "-id"), name="other_job_list"),)

    def __str__(self) -> str:
        return f"{self.number} {self.name}"

    @property
    def gpu_count(self) -> int:
        """GPUs of all types."""
        return sum(self.gpus.values())
