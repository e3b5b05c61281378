"""Resource quotas: what a workspace may hold on a cluster, as a tree."""

from __future__ import annotations

from typing import Final

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.models import tree
from quotas.models.audited import Audited
from quotas.models.clusters import Cluster
from quotas.models.workspaces import Workspace

PUBLIC_GPUS: Final = 2
PUBLIC_CPU_MILLI: Final = 8000
"""What one person may hold of public resources unless the admin says otherwise (DLC page, source)."""


class Source(models.TextChoices):
    """Where the resources come from (DLC page, source)."""

    QUOTA = "quota", _("Resource quota")
    PUBLIC = "public", _("Public resources")
    PREEMPTIBLE = "preemptible", _("Preemptible resources")


class Period(models.TextChoices):
    """How long GPU-hours last."""

    DAY = "day", _("Day")
    WEEK = "week", _("Week")
    MONTH = "month", _("Month")


class Quota(Audited):
    """Ceilings; an empty field is no ceiling.  `gpus_by_type` bounds single types below `gpus`.

    What is held below a quota counts in it too: a job has to fit into its own quota and into everything
    above.  `person_…` bound what one person holds directly in this quota.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="quotas")
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="quotas")
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children", verbose_name=_("part of")
    )
    slug = models.SlugField(_("short name"), max_length=63)
    name = models.CharField(_("name"), max_length=200)
    source = models.CharField(_("source"), max_length=16, choices=Source, default=Source.QUOTA)
    accepts_jobs = models.BooleanField(
        _("takes jobs"), default=True, help_text=_("Without it, it only divides what it holds.")
    )
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
    gpu_hours = models.IntegerField(
        _("GPU-hours"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("Once they are used up, nothing more starts until the next period."),
    )
    period = models.CharField(_("in each"), max_length=8, choices=Period, default=Period.MONTH)
    person_cpu_milli = models.BigIntegerField(
        _("CPU (milli-cores) of one person"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    person_memory_mib = models.BigIntegerField(
        _("memory (MiB) of one person"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    person_gpus = models.IntegerField(
        _("GPUs of one person"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    person_jobs = models.IntegerField(
        _("jobs of one person"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    may_borrow = models.BooleanField(
        _("may borrow"), default=True, help_text=_("Jobs that allow it may use what others leave idle.")
    )
    most_pending = models.IntegerField(
        _("jobs waiting at the engine"),
        default=100,
        validators=[MinValueValidator(1)],
        help_text=_("Where the engine schedules, at most so many are handed over that do not run yet."),
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

    def clean(self) -> None:
        """Refuse a tree in which somebody promises more than they hold."""
        tree.check(self)

    @property
    def most_gpus_of_one(self) -> int | None:
        """GPUs of one person; public resources have a ceiling even where none is written."""
        public = PUBLIC_GPUS if self.source == Source.PUBLIC else None
        return public if self.person_gpus is None else self.person_gpus

    @property
    def most_cpu_of_one(self) -> int | None:
        """Milli-cores of one person, likewise."""
        public = PUBLIC_CPU_MILLI if self.source == Source.PUBLIC else None
        return public if self.person_cpu_milli is None else self.person_cpu_milli
