"""Drafts: what somebody has typed and not submitted."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job
from quotas.models import Workspace


class Draft(models.Model):
    """A job file in the making; nothing is refused as a draft.  `version` counts its changes."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="drafts")
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="drafts", null=True, blank=True)
    origin = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="+")
    name = models.CharField(_("name"), max_length=256, blank=True)
    dialect = models.CharField(_("dialect"), max_length=32, blank=True)
    text = models.TextField(_("text"), blank=True)
    version = models.IntegerField(_("version"), default=1)
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("draft")
        verbose_name_plural = _("drafts")
        ordering = ("-updated_at",)

    def __str__(self) -> str:
        return self.name or str(self.pk)
