"""Visits: who may pass the gateway to an endpoint, from which browser."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.endpoints import Endpoint


class EndpointVisit(models.Model):
    """One person's way from the console to an endpoint: first a ticket, then a cookie.

    `secret` is the SHA-256 of the ticket until `entered_at`, and of the cookie from then on; neither is
    kept.  `browser` is the SHA-256 of what only the browser that asked for the ticket holds.  A visit is
    worth nothing once the sign-in it came from (`session_key`) is over.
    """

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="visits", verbose_name=_("endpoint"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("person")
    )
    session_key = models.CharField(max_length=40, editable=False)
    browser = models.CharField(max_length=64, editable=False)
    secret = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(_("asked"), db_default=Now())
    entered_at = models.DateTimeField(_("entered"), null=True, blank=True)
    seen_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta:
        verbose_name = _("visit")
        verbose_name_plural = _("visits")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.user} → {self.endpoint}"
