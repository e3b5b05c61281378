"""Sign-ins that last, and what providers gave for them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class SignIn(models.Model):
    """A browser in which somebody is signed in, as long as its session lasts.

    `provider`, `subject` and `sid` are an OIDC provider's, so that it can end what it began.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="sign_ins", verbose_name=_("user")
    )
    session_key = models.CharField(max_length=40, unique=True, editable=False)
    how = models.CharField(_("by"), max_length=64)
    provider = models.CharField(max_length=64, blank=True)
    subject = models.CharField(max_length=500, blank=True)
    sid = models.CharField(max_length=255, blank=True)
    address = models.CharField(_("address"), max_length=64, blank=True)
    browser = models.CharField(_("browser"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("since"), auto_now_add=True)

    class Meta:
        verbose_name = _("sign-in")
        verbose_name_plural = _("sign-ins")
        ordering = ("-id",)
        indexes = (models.Index(fields=("provider", "subject"), name="sign_in_of_subject"),)

    def __str__(self) -> str:
        return f"{self.user} · {self.how}"


class Grant(models.Model):
    """A provider's refresh token, by which it is asked about a person who is not signed in."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="grants")
    provider = models.CharField(max_length=64)
    refresh_token = models.TextField(editable=False)
    checked_at = models.DateTimeField(_("last checked"))

    class Meta:
        verbose_name = _("provider grant")
        verbose_name_plural = _("provider grants")
        constraints = (models.UniqueConstraint(fields=("user", "provider"), name="one_grant"),)

    def __str__(self) -> str:
        return f"{self.user} · {self.provider}"
