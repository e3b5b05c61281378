"""Access keys, by which the vendors' own clients sign their requests."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from quotas import encryption
from quotas.models.audit_base import Audited


class AccessKey(Audited):
    """An id, and a secret that both sides sign with.

    The secret has to be known here to verify a signature: it is encrypted, shown once, and never rendered.
    `scopes` is a list of `quotas.accounts.tokens.SCOPES`.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="access_keys", verbose_name=_("user")
    )
    name = models.CharField(_("name"), max_length=100, blank=True)
    key_id = models.CharField(_("access key ID"), max_length=32, unique=True)
    ciphertext = models.TextField(editable=False)
    scopes = models.JSONField(_("scopes"), default=list)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("access key")
        verbose_name_plural = _("access keys")
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.name or self.key_id

    @property
    def has_expired(self) -> bool:
        """Return whether the key is past its expiry."""
        return self.expires_at is not None and self.expires_at <= timezone.now()

    def reveal(self) -> str:
        """Return the secret, to verify a signature."""
        return encryption.decrypt(self.ciphertext)


class UsedSignature(models.Model):
    """The nonce of a signed request that was accepted; the same one is refused until `expires_at`.

    `digest` is the SHA-256 of key and nonce.
    """

    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = _("used signature")
        verbose_name_plural = _("used signatures")

    def __str__(self) -> str:
        return self.digest
