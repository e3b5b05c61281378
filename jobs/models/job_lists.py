"""What a person keeps about lists of jobs: stars, saved views, and the columns that they chose."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job


class JobStar(models.Model):
    """A star that a person gave a job; nobody else sees it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="job_stars")
    job = models.ForeignKey(Job, models.CASCADE, related_name="stars")

    class Meta:
        verbose_name = _("star")
        verbose_name_plural = _("stars")
        constraints = (models.UniqueConstraint(fields=("user", "job"), name="one_star"),)

    def __str__(self) -> str:
        return f"{self.user_id} {self.job_id}"


class SavedView(models.Model):
    """A query line and an order under a name of the person's."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="job_views")
    name = models.CharField(_("name"), max_length=60)
    query = models.CharField(_("query"), max_length=1024, blank=True)
    sort = models.CharField(_("order"), max_length=32, blank=True)

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("user", "name"), name="one_view_of_a_name"),)

    def __str__(self) -> str:
        return self.name


class ChosenColumns(models.Model):
    """The columns that a person wants in the list of jobs, by name, in their order."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="job_columns"
    )
    names = models.JSONField(_("columns"), default=list)

    class Meta:
        verbose_name = _("selected columns")
        verbose_name_plural = _("selected columns")

    def __str__(self) -> str:
        return ", ".join(self.names)
