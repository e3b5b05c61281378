"""Answers to requests with an Idempotency-Key, so that a repeated request creates nothing again."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class StoredAnswer(models.Model):
    """The answer to one request of a person; jobs and sweeps hold their own keys instead.

    `digest` is that of the whole request; `status` is 0 while the request is processed.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    status = models.SmallIntegerField(default=0)
    body = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = _("stored answer")
        verbose_name_plural = _("stored answers")
        constraints = (models.UniqueConstraint(fields=("owner", "key"), name="one_answer_per_key"),)
        indexes = (models.Index(fields=("created_at",), name="stored_answers_by_age"),)

    def __str__(self) -> str:
        return self.key
