"""Error messages that a workspace adds to the catalogue of errors."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.models import Workspace
from quotas.models.audit_base import Audited


class FaultPattern(Audited):
    """A plain text; a line of a failed replica's output that has it shows an error of this origin."""

    class OriginChoice(models.TextChoices):
        """`jobs.fault_tolerance.error_catalogue.Origin`."""

        OWN = "own", _("the job's program")
        PLATFORM = "platform", _("the platform")
        UNKNOWN = "unknown", _("unknown")

    workspace = models.ForeignKey(
        Workspace, models.CASCADE, related_name="fault_patterns", verbose_name=_("workspace")
    )
    text = models.CharField(_("text"), max_length=200)
    origin = models.CharField(_("origin"), max_length=8, choices=OriginChoice, default=OriginChoice.UNKNOWN)

    class Meta:
        verbose_name = _("error pattern")
        verbose_name_plural = _("error patterns")
        ordering = ("workspace", "id")
        constraints = (models.UniqueConstraint(fields=("workspace", "text"), name="one_fault_pattern"),)

    def __str__(self) -> str:
        return self.text
