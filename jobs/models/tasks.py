"""Tasks: the replicas of one run."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.attempts import Attempt
from jobs.states import TaskState


class Task(models.Model):
    """One replica as last observed.

    `ordinal` is its place among all replicas of the run, so that a page of 2,000 of them is a range of
    a key.
    """

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="tasks", verbose_name=_("attempt"))
    run = models.IntegerField(_("run"), default=1)
    ordinal = models.IntegerField(default=0)
    role = models.CharField(_("role"), max_length=255)
    index = models.IntegerField(_("index"), default=0)
    state = models.CharField(
        _("state"), max_length=12, choices=[(s.value, s.value) for s in TaskState], default=TaskState.WAITING
    )
    reason_code = models.CharField(_("reason"), max_length=32, blank=True)
    reason_params = models.JSONField(_("reason, parameters"), default=dict)
    exit_code = models.IntegerField(_("exit code"), null=True, blank=True)
    signal = models.IntegerField(_("signal"), null=True, blank=True)
    node = models.CharField(_("node"), max_length=255, blank=True)
    image_used = models.BooleanField(_("image used"), null=True, blank=True)
    commit = models.CharField(_("commit of its code"), max_length=64, blank=True, default="")
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("replica")
        verbose_name_plural = _("replicas")
        ordering = ("attempt", "run", "ordinal")
        constraints = (
            models.UniqueConstraint(fields=("attempt", "run", "role", "index"), name="one_task"),
            models.UniqueConstraint(fields=("attempt", "run", "ordinal"), name="one_task_ordinal"),
        )

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"
