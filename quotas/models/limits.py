"""Resource quotas: what a workspace may hold on a cluster, as a tree."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext as _text
from django.utils.translation import gettext_lazy as _

from quotas.default_names import Titled
from quotas.models import tree
from quotas.models.audit_base import Audited
from quotas.models.clusters import Cluster
from quotas.models.workspaces import Role, Workspace

PUBLIC_GPUS: Final = 2
PUBLIC_CPU_MILLI: Final = 8000
"""What one person may hold of public resources unless the admin says otherwise (DLC page, source)."""


class Source(models.TextChoices):
    """The source of resources (DLC page, source)."""

    QUOTA = "quota", _("Resource quota")
    PUBLIC = "public", _("Public resources")
    PREEMPTIBLE = "preemptible", _("Preemptible resources")


class Kind(models.TextChoices):
    """The kind of machines (DLC page, resource type)."""

    GENERAL = "general", _("General computing")
    LINGJUN = "lingjun", _("Lingjun intelligent computing")


class Period(models.TextChoices):
    """How long GPU-hours last."""

    DAY = "day", _("Day")
    WEEK = "week", _("Week")
    MONTH = "month", _("Month")


class Quota(Titled, Audited):
    """Ceilings; an empty field is no ceiling.  `gpus_by_type` bounds single types below `gpus`.

    What is held below a quota counts in it too: a job has to fit into its own quota and into everything
    above.  `person_…` bound what one person holds directly in this quota.
    """

    workspace = models.ForeignKey(
        Workspace, models.CASCADE, related_name="quotas", verbose_name=_("workspace")
    )
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="quotas", verbose_name=_("cluster"))
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children", verbose_name=_("part of")
    )
    slug = models.SlugField(_("short name"), max_length=63)
    name = models.CharField(_("name"), max_length=200)
    source = models.CharField(_("source"), max_length=16, choices=Source, default=Source.QUOTA)
    kind = models.CharField(
        _("resource type"),
        max_length=16,
        choices=Kind,
        default=Kind.GENERAL,
        help_text=_("The form of a new job offers here what PAI-DLC offers on such machines."),
    )
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

    idle_warn_minutes = models.IntegerField(
        _("warn after (minutes idle)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_(
            "The owner is told that what the job holds is not used. Empty: as in the quota that this one is "
            "part of."
        ),
    )
    idle_release_minutes = models.IntegerField(
        _("end after (minutes idle)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Later than the warning. Empty: nothing is ended, its owner is only told."),
    )
    idle_percent = models.SmallIntegerField(
        _("idle below (percent)"),
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_("Of the time of every GPU; of one CPU core where a notebook or another page is served."),
    )
    idle_extensions = models.SmallIntegerField(
        _("“I still need it”, times"),
        default=2,
        validators=[MinValueValidator(0)],
        help_text=_("So often may the owner of a job begin the time anew."),
    )
    idle_exempt = models.BooleanField(
        _("never idle"),
        default=False,
        help_text=_("Nobody is warned and nothing is ended here, whatever the quotas above say."),
    )
    idle_exempt_people = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="+", verbose_name=_("except for these people")
    )
    idle_exempt_roles = models.JSONField(
        _("except for these roles"),
        default=list,
        blank=True,
        help_text=_('Roles in the workspace, as in ["admin"].'),
    )
    idle_exempt_labels = models.JSONField(
        _("except for jobs with one of these labels"),
        default=dict,
        blank=True,
        help_text=_('Labels of the job file, as in {"keep": "yes"}; an empty value is any.'),
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
        """Refuse a tree in which somebody promises more than they hold, and an end without a warning."""
        tree.check(self)
        _check_idle(self)

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


def _check_idle(quota: Quota) -> None:
    problems: dict[str, str] = {}
    warn, release = quota.idle_warn_minutes, quota.idle_release_minutes
    if release is not None and (warn is None or release <= warn):
        text = _text("Say how long before it its owner is warned: nothing is ended without a warning.")
        problems["idle_warn_minutes" if warn is None else "idle_release_minutes"] = text
    roles = quota.idle_exempt_roles
    if not isinstance(roles, list) or any(role not in Role.values for role in roles):
        text = _text("Write a list of these roles: %(roles)s.")
        problems["idle_exempt_roles"] = text % {"roles": ", ".join(Role.values)}
    labels = quota.idle_exempt_labels
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        problems["idle_exempt_labels"] = _text('Write a value for each label, as in {"keep": "yes"}.')
    if problems:
        raise ValidationError(problems)
