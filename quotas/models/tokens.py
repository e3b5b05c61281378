"""Access tokens of the native API."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.models.audit_base import Audited


class AccessToken(Audited):
    """A token's digest; the token itself is shown once and stored nowhere.

    `prefix` finds the row, `digest` is an HMAC of the whole token under the console's key; `scopes` is
    a list of `quotas.accounts.tokens.SCOPES`.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="access_tokens", verbose_name=_("user")
    )
    name = models.CharField(_("name"), max_length=100, blank=True)
    prefix = models.CharField(_("prefix"), max_length=16, unique=True)
    digest = models.CharField(max_length=64, editable=False)
    scopes = models.JSONField(_("scopes"), default=list)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("access token")
        verbose_name_plural = _("access tokens")
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.name or self.prefix
