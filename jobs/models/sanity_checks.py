"""Sanity checks of attempts."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.attempts import Attempt


class SanityCheck(models.Model):
    """The sanity check of a run's nodes, before its replicas' commands.

    `phases` and `failed` are rows of `jobs.node.supervisor.sanity_file`; of a fault, `names` are its replicas
    and `nodes` their nodes.  `replicas` have the checks of each replica, those that failed first.
    `failed_nodes` are nodes that alone are to blame: the job's next attempts leave them out.
    """

    class Status(models.TextChoices):
        """Status, in PAI-DLC's words as far as they are published."""

        RUNNING = "Running", _("Running")
        SUCCEEDED = "Succeeded", _("Passed")
        FAILED = "Failed", _("Failed")
        STOPPED = "Stopped", _("Stopped")

    attempt = models.ForeignKey(
        Attempt, models.CASCADE, related_name="sanity_checks", verbose_name=_("attempt")
    )
    run = models.IntegerField(_("run"), default=1)
    status = models.CharField(_("status"), max_length=12, choices=Status, default=Status.RUNNING)
    phases: models.JSONField[Any, Any] = models.JSONField(_("phases"), default=list)
    replicas: models.JSONField[Any, Any] = models.JSONField(_("replicas"), default=list)
    failed: models.JSONField[Any, Any] = models.JSONField(_("failed checks"), default=list)
    failed_nodes: models.JSONField[Any, Any] = models.JSONField(_("failed nodes"), default=list)

    class Meta:
        verbose_name = _("sanity check")
        verbose_name_plural = _("sanity checks")
        ordering = ("attempt", "run")
        constraints = (models.UniqueConstraint(fields=("attempt", "run"), name="one_sanity_check"),)

    def __str__(self) -> str:
        return f"{self.attempt} · {self.run}"
