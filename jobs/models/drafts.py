"""Drafts of job files, and their earlier versions."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job
from jobs.models.sealed import SealedTextField
from jobs.trees import find_addresses
from quotas.models import Workspace


class Draft(models.Model):
    """A job file in the making; nothing is refused as a draft.

    `template` names a version of one, ID@NUMBER (`jobs.submission.templates`); `sweep` is what was typed
    beside the text for a sweep of it, and `at_once` with it.
    `version` counts its changes; `window` is the rendering of the form that made the last one.  What somebody
    types may hold secrets, so it is encrypted; `trees` has the uploaded trees that it names.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="drafts", verbose_name=_("owner")
    )
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="drafts", null=True, blank=True)
    origin = models.ForeignKey(Job, models.SET_NULL, null=True, blank=True, related_name="+")
    name = models.CharField(_("name"), max_length=256, blank=True)
    dialect = models.CharField(_("format"), max_length=32, blank=True)
    text = SealedTextField(_("string"), blank=True)
    trees = models.TextField(blank=True, default="", editable=False)
    sweep = SealedTextField(_("sweep parameters"), blank=True, default="")
    at_once = models.CharField(_("max concurrent jobs"), max_length=8, blank=True, default="")
    place = models.CharField(_("target"), max_length=255, blank=True)
    template = models.CharField(_("source template"), max_length=80, blank=True)
    version = models.IntegerField(_("version"), default=1)
    window = models.CharField(max_length=64, blank=True, editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("draft")
        verbose_name_plural = _("drafts")
        ordering = ("-updated_at",)

    def __str__(self) -> str:
        return self.name or str(self.pk)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save with the uploaded trees that the text names."""
        self.trees = " ".join(sorted(set(find_addresses(self.text))))
        super().save(*args, **kwargs)


class DraftVersion(models.Model):
    """An earlier version of a draft; or, `beside` it, the text of a second window.

    `number` is the draft's version with that text, or the one that the second window had begun with.
    """

    draft = models.ForeignKey(Draft, models.CASCADE, related_name="versions")
    number = models.IntegerField(_("version"))
    dialect = models.CharField(_("format"), max_length=32, blank=True)
    text = SealedTextField(_("string"), blank=True)
    sweep = SealedTextField(_("sweep parameters"), blank=True, default="")
    at_once = models.CharField(_("max concurrent jobs"), max_length=8, blank=True, default="")
    beside = models.BooleanField(_("from another window"), default=False)
    window = models.CharField(max_length=64, blank=True, editable=False)
    saved_at = models.DateTimeField(_("saved"))

    class Meta:
        verbose_name = _("draft version")
        verbose_name_plural = _("draft versions")
        ordering = ("-saved_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=("draft", "window"),
                condition=models.Q(beside=True),
                name="one_version_beside_a_window",
            ),
        )

    def __str__(self) -> str:
        return f"{self.draft} · {self.number}"
