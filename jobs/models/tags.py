"""Tags that people put on jobs to find them again."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job


class JobTag(models.Model):
    """A tag of a job."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="tags", verbose_name=_("job"))
    name = models.CharField(_("tag"), max_length=255)

    class Meta:
        verbose_name = _("job tag")
        verbose_name_plural = _("job tags")
        ordering = ("id",)
        constraints = (models.UniqueConstraint(fields=("job", "name"), name="one_tag"),)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("name", "job"), name="jobs_by_tag"),
        ]

    def __str__(self) -> str:
        return self.name
