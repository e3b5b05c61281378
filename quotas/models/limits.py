"""Resource quotas: what a workspace may hold on a cluster."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.models.clusters import Cluster
from quotas.models.workspaces import Workspace


class Quota(models.Model):
    """A ceiling; an empty field is no ceiling.  `gpus_by_type` bounds single types below `gpus`."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="quotas")
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="quotas")
    slug = models.SlugField(_("short name"), max_length=63)
    name = models.CharField(_("name"), max_length=200)
    cpu_milli = models.BigIntegerField(
        _("CPU (milli-cores)"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    memory_mib = models.BigIntegerField(
        _("memory (MiB)"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    gpus = models.IntegerField(_("GPUs"), null=True, blank=True, validators=[MinValueValidator(0)])
    gpus_by_type = models.JSONField(_("GPUs by type"), default=dict, blank=True)
    most_jobs = models.IntegerField(
        _("jobs at a time"), null=True, blank=True, validators=[MinValueValidator(0)]
    )

    class Meta:
        verbose_name = _("resource quota")
        verbose_name_plural = _("resource quotas")
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("workspace", "cluster", "slug"), name="one_quota_name"),
        )

    def __str__(self) -> str:
        return self.name
