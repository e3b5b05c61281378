"""Endpoints: labelled ports of live replicas."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.tasks import Task


class Endpoint(models.Model):
    """A port of a replica, reached through the gateway as `<slug>.<apps domain>`.

    `slug` is random: a name that can't be guessed, and a DNS label whatever the port label was.
    """

    task = models.ForeignKey(Task, models.CASCADE, related_name="endpoints")
    label = models.CharField(_("label"), max_length=255)
    ordinal = models.IntegerField(default=0)
    slug = models.SlugField(_("host name"), max_length=63, unique=True)
    host = models.CharField(_("host"), max_length=255)
    port = models.IntegerField(_("port"))
    ready = models.BooleanField(_("ready"), default=False)

    class Meta:
        verbose_name = _("endpoint")
        verbose_name_plural = _("endpoints")
        ordering = ("task", "label", "ordinal")
        constraints = (models.UniqueConstraint(fields=("task", "label", "ordinal"), name="one_endpoint"),)

    def __str__(self) -> str:
        return self.slug
