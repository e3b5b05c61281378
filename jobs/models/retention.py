"""How long workspaces keep what ended jobs leave, and what was removed because of it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Coalesce
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from quotas.models import Workspace
from quotas.models.audit_base import Audited


class RetentionKind(models.TextChoices):
    """What a retention removes."""

    JOBS = "jobs", _("Jobs")
    LOGS = "logs", _("Logs")
    EVENTS = "events", _("Events")
    UPLOADS = "uploads", _("Uploaded code")


@dataclass(frozen=True, slots=True)
class RetentionDays:
    """Days after a job's end for which each kind is kept; None: no limit, for folders one day."""

    jobs: int | None = None
    logs: int | None = None
    events: int | None = None
    folders: int | None = None
    uploads: int | None = None

    def within(self, other: RetentionDays) -> RetentionDays:
        """Return the shorter of both for each kind."""
        return RetentionDays(*(_shorter(getattr(self, name), getattr(other, name)) for name in KINDS))

    @property
    def is_limited(self) -> bool:
        """Tell whether anything but folders is removed some day."""
        return any(getattr(self, kind) is not None for kind in RetentionKind.values)


_DAYS: Final = (MinValueValidator(1), MaxValueValidator(36_500))

KINDS: Final = tuple(each.name for each in fields(RetentionDays))


def _shorter(first: int | None, second: int | None) -> int | None:
    known = [days for days in (first, second) if days is not None]
    return min(known, default=None)


class RetentionPolicy(Audited):
    """The days of the whole site (no workspace), or of one workspace, never longer than the site's.

    An empty field of a workspace means the site's days; of the site, that nothing is removed, and for folders
    one day.  Nothing is kept longer than its job.
    """

    workspace = models.ForeignKey(
        Workspace,
        models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        verbose_name=_("workspace"),
    )
    jobs = models.PositiveIntegerField(_("jobs"), null=True, blank=True, validators=_DAYS)
    logs = models.PositiveIntegerField(_("logs"), null=True, blank=True, validators=_DAYS)
    events = models.PositiveIntegerField(_("events"), null=True, blank=True, validators=_DAYS)
    folders = models.PositiveIntegerField(_("folders"), null=True, blank=True, validators=_DAYS)
    uploads = models.PositiveIntegerField(_("uploaded code"), null=True, blank=True, validators=_DAYS)

    class Meta:
        verbose_name = _("retention")
        verbose_name_plural = _("retention")
        constraints = (models.UniqueConstraint(Coalesce("workspace", 0), name="one_retention_policy"),)

    def __str__(self) -> str:
        return self.workspace.slug if self.workspace else "site"

    @property
    def days(self) -> RetentionDays:
        """Return its own days, without the site's."""
        return RetentionDays(*(getattr(self, name) for name in KINDS))

    def clean(self) -> None:
        """Nothing is kept longer than the site says, or than its job."""
        site = load_site_days() if self.workspace_id else RetentionDays()
        problems: dict[str, Any] = {}
        jobs = _shorter(self.jobs, site.jobs)
        for name in KINDS:
            own, most = getattr(self, name), getattr(site, name)
            if own is not None and most is not None and own > most:
                problems[name] = gettext("At most %(days)d days, as the site's default says.") % {
                    "days": most
                }
            elif own is not None and jobs is not None and own > jobs:
                problems[name] = gettext("At most %(days)d days: jobs are deleted then.") % {"days": jobs}
        if problems:
            raise ValidationError(problems)


def load_site_days() -> RetentionDays:
    """Return the days of the whole site."""
    policy = RetentionPolicy.objects.filter(workspace=None).first()
    return policy.days if policy else RetentionDays()


def load_days(proposed: RetentionPolicy | None = None) -> dict[int, RetentionDays]:
    """Return the days of every workspace by its key; as if `proposed` were saved, if it is given."""
    policies = {row.workspace_id: row.days for row in RetentionPolicy.objects.all()}
    if proposed is not None:
        policies[proposed.workspace_id] = proposed.days
    site = policies.get(None, RetentionDays())
    keys = Workspace.objects.order_by("pk").values_list("pk", flat=True)
    return {key: policies.get(key, RetentionDays()).within(site) for key in keys}


def load_days_of(workspace_id: int) -> RetentionDays:
    """Return the days of one workspace."""
    found = RetentionPolicy.objects.filter(models.Q(workspace=None) | models.Q(workspace=workspace_id))
    days = RetentionDays()
    for policy in found:
        days = days.within(policy.days)
    return days


class RetentionTally(models.Model):
    """What was removed on one day (UTC), until the audit log has it."""

    day = models.DateField()
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    kind = models.CharField(max_length=8, choices=RetentionKind)
    count = models.BigIntegerField(default=0)
    size = models.BigIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("day", "workspace", "kind"), name="one_retention_tally"),
        )

    def __str__(self) -> str:
        return f"{self.day} {self.workspace_id} {self.kind}"
