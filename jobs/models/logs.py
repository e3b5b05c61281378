"""Logs and their storage, live and sealed."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.attempts import Attempt


class LogStream(models.Model):
    """One log: bytes by offset, append-only.

    While it lives it is read where it lies (`live_path`, below the local jobs folder).  Sealed, it is
    its chunks; `size` is then exact.  `cut_from`/`cut_to` bound what a cap left out.
    """

    class State(models.TextChoices):
        OPEN = "open", _("open")
        COMPLETE = "complete", _("complete")
        TRUNCATED = "truncated", _("truncated")
        GONE = "gone", _("missing")

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="logs", verbose_name=_("attempt"))
    run = models.IntegerField(_("run"), default=1)
    role = models.CharField(_("role"), max_length=255)
    index = models.IntegerField(_("index"), default=0)
    name = models.CharField(_("stream"), max_length=16, default="output")
    state = models.CharField(_("state"), max_length=12, choices=State, default=State.OPEN)
    live_path = models.CharField(max_length=500, blank=True)
    sealed = models.BooleanField(_("finalized"), default=False)
    size = models.BigIntegerField(_("size"), default=0)
    cut_from = models.BigIntegerField(null=True, blank=True)
    cut_to = models.BigIntegerField(null=True, blank=True)

    class Meta:
        verbose_name = _("log")
        verbose_name_plural = _("logs")
        constraints = (
            models.UniqueConstraint(
                fields=("attempt", "run", "role", "index", "name"), name="one_log_stream"
            ),
        )

    def __str__(self) -> str:
        return f"{self.role}-{self.index}/{self.name}"


class LogChunk(models.Model):
    """At most 8 MiB of a sealed log, in the default storage."""

    stream = models.ForeignKey(LogStream, models.CASCADE, related_name="chunks", verbose_name=_("log"))
    offset = models.BigIntegerField(_("offset"))
    length = models.IntegerField(_("length"))
    storage_name = models.CharField(_("file"), max_length=300)

    class Meta:
        verbose_name = _("log chunk")
        verbose_name_plural = _("log chunks")
        ordering = ("offset",)
        constraints = (models.UniqueConstraint(fields=("stream", "offset"), name="one_log_chunk"),)

    def __str__(self) -> str:
        return f"{self.offset}+{self.length}"
