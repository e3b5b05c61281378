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

LEAST_RUNNING_S: Final = 300.0
"""What borrows runs so long before whoever has a right to it may have it back, unless the quota says else."""


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
    """Limits; an empty field is no limit.  `gpus_by_type` bounds single types below `gpus`.

    What is held below a quota counts in it too: a job has to fit into its own quota and into everything
    above.  `person_…` bound what one person holds directly in this quota.
    """

    workspace = models.ForeignKey(
        Workspace, models.CASCADE, related_name="quotas", verbose_name=_("workspace")
    )
    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="quotas", verbose_name=_("cluster"))
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children", verbose_name=_("parent quota")
    )
    slug = models.SlugField(_("short name"), max_length=63)
    name = models.CharField(_("name"), max_length=200)
    source = models.CharField(_("source"), max_length=16, choices=Source, default=Source.QUOTA)
    kind = models.CharField(
        _("resource type"),
        max_length=16,
        choices=Kind,
        default=Kind.GENERAL,
        help_text=_("The new job form offers the PAI-DLC options for this resource type."),
    )
    accepts_jobs = models.BooleanField(
        _("accepts jobs"),
        default=True,
        help_text=_("If not selected, the quota only distributes its resources to child quotas."),
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
        _("max concurrent jobs"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    gpu_hours = models.IntegerField(
        _("GPU-hours"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("When used up, no more jobs start until the next period."),
    )
    period = models.CharField(_("period"), max_length=8, choices=Period, default=Period.MONTH)
    person_cpu_milli = models.BigIntegerField(
        _("CPU per user (milli-cores)"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    person_memory_mib = models.BigIntegerField(
        _("memory per user (MiB)"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    person_gpus = models.IntegerField(
        _("GPUs per user"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    person_jobs = models.IntegerField(
        _("jobs per user"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    may_borrow = models.BooleanField(
        _("can borrow"),
        default=True,
        help_text=_("Jobs that allow borrowing can use idle resources of other quotas."),
    )
    fair_share_weight = models.PositiveSmallIntegerField(
        _("fair-share weight"),
        default=1,
        db_default=1,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_(
            "With weight 2, what the workspace already uses delays the jobs of this quota half as much."
        ),
    )
    least_running_minutes = models.PositiveIntegerField(
        _("min run time when borrowing (minutes)"),
        null=True,
        blank=True,
        help_text=_("Jobs on borrowed or preemptible resources run at least this long. Empty: 5 minutes."),
    )
    most_pending = models.IntegerField(
        _("max pending jobs at the engine"),
        default=100,
        validators=[MinValueValidator(1)],
        help_text=_("If the engine schedules: maximum number of submitted jobs that are not running yet."),
    )

    idle_warn_minutes = models.IntegerField(
        _("warn after (minutes idle)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_(
            "Notifies the owner that the job's resources are not in use. Empty: same as the parent quota."
        ),
    )
    idle_release_minutes = models.IntegerField(
        _("stop after (minutes idle)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_(
            "Must be later than the warning. Empty: the job is not stopped, only its owner is notified."
        ),
    )
    idle_percent = models.SmallIntegerField(
        _("idle below (percent)"),
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_("Utilization of each GPU. For notebooks and other web services: of one CPU core."),
    )
    idle_extensions = models.SmallIntegerField(
        _("max “Keep running” extensions"),
        default=2,
        validators=[MinValueValidator(0)],
        help_text=_("How many times the job owner can reset the idle time."),
    )
    idle_exempt = models.BooleanField(
        _("never idle"),
        default=False,
        help_text=_("No idle warnings or stops in this quota, regardless of the parent quotas."),
    )
    idle_exempt_people = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="+", verbose_name=_("exempt users")
    )
    idle_exempt_roles = models.JSONField(
        _("exempt roles"),
        default=list,
        blank=True,
        help_text=_('Workspace roles, e.g. ["admin"].'),
    )
    idle_exempt_labels = models.JSONField(
        _("exempt job labels"),
        default=dict,
        blank=True,
        help_text=_(
            'Labels in the job file, e.g. {"keep": "yes"}. Jobs with any of them are exempt; '
            "an empty value matches any value."
        ),
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
    def least_running_s(self) -> float:
        """Seconds that a job runs on borrowed resources before somebody may have them back."""
        minutes = self.least_running_minutes
        return LEAST_RUNNING_S if minutes is None else 60.0 * minutes

    @property
    def most_gpus_of_one(self) -> int | None:
        """GPUs of one person; public resources have a limit even where none is written."""
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
