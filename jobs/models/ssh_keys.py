"""Public keys by which people are known to the SSH gateway."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job
from quotas.models.audited import Audited


class SshKey(Audited):
    """A key of one person: for every job they may enter, or with `job` for that one alone.

    `fingerprint` is SHA-256 of the key as OpenSSH writes it; no two people have the same key, so that it says
    who comes.  A private half is never stored, not even that of a key which was made here.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="ssh_keys", verbose_name=_("person")
    )
    job = models.ForeignKey(
        Job, models.CASCADE, null=True, blank=True, related_name="ssh_keys", verbose_name=_("job")
    )
    title = models.CharField(_("what it is for"), max_length=100)
    algorithm = models.CharField(_("kind"), max_length=64)
    text = models.TextField(_("public key"))
    fingerprint = models.CharField(_("fingerprint"), max_length=64, unique=True)
    created_at = models.DateTimeField(_("added"), db_default=Now())
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)

    class Meta:
        verbose_name = _("SSH key")
        verbose_name_plural = _("SSH keys")
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.title
