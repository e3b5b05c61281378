"""Clusters and their nodes."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Admission(models.TextChoices):
    """Who schedules (DESIGN section 6)."""

    CONSOLE = "console", _("The console")
    ENGINE = "engine", _("The engine")


class Cluster(models.Model):
    """A place where jobs run: the name of a backend, and its settings."""

    slug = models.SlugField(_("short name"), max_length=63, unique=True)
    name = models.CharField(_("name"), max_length=200)
    backend = models.CharField(_("backend"), max_length=32, default="local")
    config = models.JSONField(_("settings"), default=dict, blank=True)
    admission = models.CharField(
        _("admission by"), max_length=16, choices=Admission, default=Admission.CONSOLE
    )
    enabled = models.BooleanField(_("takes jobs"), default=True)
    answered_at = models.DateTimeField(_("last answer"), null=True, blank=True, editable=False)
    trouble = models.TextField(_("last trouble"), blank=True, editable=False)

    class Meta:
        verbose_name = _("cluster")
        verbose_name_plural = _("clusters")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """One machine of a cluster, as its backend's inventory last told it.

    `gpus` counts by type; `gpu_list` names each GPU (index, type, memory) for the squares of the page.
    """

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="nodes")
    name = models.CharField(_("name"), max_length=255)
    cpu_milli = models.BigIntegerField(_("CPU (milli-cores)"), default=0)
    memory_mib = models.BigIntegerField(_("memory (MiB)"), default=0)
    gpus = models.JSONField(_("GPUs by type"), default=dict, blank=True)
    gpu_list = models.JSONField(_("GPUs"), default=list, blank=True)
    schedulable = models.BooleanField(_("schedulable"), default=True)
    why = models.CharField(_("why not"), max_length=500, blank=True)
    seen_at = models.DateTimeField(_("last seen"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("node")
        verbose_name_plural = _("nodes")
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("cluster", "name"), name="one_node"),)

    def __str__(self) -> str:
        return self.name
