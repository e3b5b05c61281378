"""Jobs that start after others."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job


class Dependency(models.Model):
    """`job` starts after `other`, once that has become what `when` says.

    It is decided in the transaction that ends `other`, and then stays as it is.  `named` is how the job file
    names the other one.
    """

    class When(models.TextChoices):
        SUCCEEDED = "succeeded", _("Succeeded")
        ENDED = "ended", _("Ended")
        FAILED = "failed", _("Failed")

    class State(models.TextChoices):
        OPEN = "open", _("Open")
        MET = "met", _("Met")
        NEVER = "never", _("Never to be met")

    job = models.ForeignKey(Job, models.CASCADE, related_name="waits_for")
    other = models.ForeignKey(Job, models.SET_NULL, null=True, related_name="waited_for_by")
    named = models.CharField(_("named"), max_length=300)
    when = models.CharField(_("when it has"), max_length=12, choices=When)
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.OPEN)

    class Meta:
        verbose_name = _("dependency")
        verbose_name_plural = _("dependencies")
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.job_id} {self.when} {self.named}"
