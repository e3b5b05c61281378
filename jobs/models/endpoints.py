"""Endpoints: labelled ports of live replicas."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.tasks import Task
from jobs.states import TASK_TERMINAL, PortSource, TaskState, Unready


class Endpoint(models.Model):
    """A port of a replica, reached through the gateway as `<slug>.<apps domain>`.

    `slug` is random: a name that can't be guessed, and a DNS label whatever the port label was.  `path` is
    where the job says to begin, `token_name` under which name it wants the link's token in the query.
    """

    class Source(models.TextChoices):
        """`jobs.states.PortSource`."""

        ASKED = PortSource.ASKED.value, _("asked for")
        ANNOUNCED = PortSource.ANNOUNCED.value, _("announced by the job")
        FOUND = PortSource.FOUND.value, _("found listening")

    task = models.ForeignKey(Task, models.CASCADE, related_name="endpoints", verbose_name=_("replica"))
    label = models.CharField(_("label"), max_length=255)
    ordinal = models.IntegerField(default=0)
    slug = models.SlugField(_("host name"), max_length=63, unique=True)
    host = models.CharField(_("host"), max_length=255)
    port = models.IntegerField(_("port"))
    ready = models.BooleanField(_("ready"), default=False)
    source = models.CharField(_("known because"), max_length=16, choices=Source, default=Source.ASKED)
    path = models.CharField(_("path"), max_length=500, blank=True)
    token_name = models.CharField(_("name of the token"), max_length=32, blank=True)
    why = models.CharField(_("why not"), max_length=16, blank=True)
    why_params = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = _("endpoint")
        verbose_name_plural = _("endpoints")
        ordering = ("task", "label", "ordinal")
        constraints = (models.UniqueConstraint(fields=("task", "label", "ordinal"), name="one_endpoint"),)

    def __str__(self) -> str:
        return self.slug

    def lacks(self, task: Task) -> str:
        """Why nothing can be had there, as a code of `jobs.states.Unready`; empty when it is ready.

        `task` is its own, which the caller has at hand.
        """
        if TaskState(task.state) in TASK_TERMINAL:
            return Unready.ENDED
        if task.state != TaskState.RUNNING:
            return Unready.WAITING
        return "" if self.ready else self.why or Unready.SILENT
