"""Attempts (starts by the console) and runs (restarts by the engine)."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job
from jobs.states import EndKind


class Attempt(models.Model):
    """One start of a job, under one key at the engine.

    Intent and fact have different columns and different writers: `end_*` say that somebody wants the
    end (first writer wins), `ended_at` that it was observed.  `lease_*` belong to whoever is
    submitting; `live` marks what `observe` must look at.  `extended_s` was added to its longest running time,
    and `extended_told_s` of it the engine knows.  `endpoint_token` is encrypted; what listens on
    the attempt's ports may ask for it, and the console's links carry it.  `confided` has, encrypted, the
    secrets that the attempt was sent with: they are masked in its logs.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="attempts", verbose_name=_("job"))
    number = models.IntegerField(_("number"), default=1)
    key = models.CharField(_("key"), max_length=63, unique=True)
    handle = models.CharField(_("handle"), max_length=500, blank=True)
    live = models.BooleanField(_("live"), default=False)

    endpoint_token = models.CharField(max_length=300, blank=True, editable=False)
    confided = models.TextField(blank=True, default="", editable=False)

    end_kind = models.CharField(
        _("end wanted"), max_length=16, blank=True, choices=[(k.value, k.value) for k in EndKind]
    )
    end_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    end_why = models.CharField(_("end wanted because"), max_length=500, blank=True)
    end_at = models.DateTimeField(_("end wanted since"), null=True, blank=True)
    end_asked_at = models.DateTimeField(_("engine asked to end"), null=True, blank=True)

    lease_token = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    observed_version = models.CharField(max_length=64, blank=True)
    gone_count = models.SmallIntegerField(default=0)

    extended_s = models.IntegerField(_("time added (s)"), default=0, db_default=0)
    extended_told_s = models.IntegerField(default=0, db_default=0, editable=False)

    reason_code = models.CharField(_("reason"), max_length=32, blank=True)
    reason_params = models.JSONField(_("reason, parameters"), default=dict)
    created_at = models.DateTimeField(_("made"), db_default=Now())
    submitted_at = models.DateTimeField(_("sent"), null=True, blank=True)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    logs_sealed_at = models.DateTimeField(_("logs sealed"), null=True, blank=True)
    forgotten_at = models.DateTimeField(_("removed from the engine"), null=True, blank=True)

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        ordering = ("job", "number")
        constraints = (models.UniqueConstraint(fields=("job", "number"), name="one_attempt"),)
        indexes = (
            models.Index(fields=("id",), condition=models.Q(live=True), name="attempts_live"),
            models.Index(
                fields=("ended_at",),
                condition=models.Q(ended_at__isnull=False, forgotten_at=None),
                name="attempts_to_tidy",
            ),
        )

    def __str__(self) -> str:
        return self.key

    @property
    def end_wanted(self) -> EndKind | None:
        """Why the end is wanted, if it is."""
        return EndKind(self.end_kind) if self.end_kind else None


class Run(models.Model):
    """One run of an attempt; the engine's own requeue begins the next."""

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="runs", verbose_name=_("attempt"))
    number = models.IntegerField(_("number"), default=1)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ("attempt", "number")
        constraints = (models.UniqueConstraint(fields=("attempt", "number"), name="one_run"),)

    def __str__(self) -> str:
        return f"{self.attempt} · {self.number}"
