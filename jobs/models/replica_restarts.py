"""Decisions about failed replicas whose attempt goes on."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.attempts import Attempt


class ReplicaRestart(models.Model):
    """Whether a failed replica is started again alone, decided once for each start that failed.

    `failed_run` counts the starts of the replica within the attempt's `run`; `fault` is a
    `jobs.fault_tolerance.decisions.Fault`.  The order is given from `due_at` on.
    """

    attempt = models.ForeignKey(
        Attempt, models.CASCADE, related_name="replica_restarts", verbose_name=_("attempt")
    )
    run = models.IntegerField(_("run"), default=1)
    role = models.CharField(_("role"), max_length=255)
    index = models.IntegerField(_("index"), default=0)
    failed_run = models.IntegerField(_("failed start"))
    fault = models.JSONField(_("fault"))
    restarts = models.BooleanField(_("restarted"))
    due_at = models.DateTimeField(_("restart due"))
    created_at = models.DateTimeField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("replica restart")
        verbose_name_plural = _("replica restarts")
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("attempt", "run", "role", "index", "failed_run"), name="one_replica_restart"
            ),
        )

    def __str__(self) -> str:
        return f"{self.attempt_id} · {self.role}-{self.index} · {self.failed_run}"
