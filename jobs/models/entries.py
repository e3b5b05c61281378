"""Sessions inside jobs, by SSH or in a terminal, and the SSH keys that people sign in with."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.attempts import Replica
from jobs.models.jobs import Job
from quotas.models import AccessKey, AccessToken
from quotas.models.audit_base import Audited


class SshKey(Audited):
    """A key of one person: for every job they may enter, or with `job` for that one alone.

    `fingerprint` is SHA-256 of the key as OpenSSH writes it; no two people have the same key, so that it says
    who comes.  A private half is never stored, not even that of a key which was made here.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="ssh_keys", verbose_name=_("user")
    )
    job = models.ForeignKey(
        Job, models.CASCADE, null=True, blank=True, related_name="ssh_keys", verbose_name=_("job")
    )
    title = models.CharField(_("purpose"), max_length=100)
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


def new_entry_key() -> str:
    """128 bits, safe in addresses."""
    return secrets.token_hex(16)


class AccessSession(models.Model):
    """One SSH connection into a replica, or one terminal beside it.

    `key` names it in addresses.  `seen_at` is renewed while the process that holds it lives.  A terminal is
    worth nothing once the sign-in (`session_key`), access key or token that it came from is over, and an SSH
    connection once its key is taken away.  Only `jobs.access.terminal_gateway` ends one; everybody else asks
    for it (`end_asked_at`).
    """

    class Kind(models.TextChoices):
        SSH = "ssh", _("SSH")
        TERMINAL = "terminal", _("terminal")

    class Why(models.TextChoices):
        LEFT = "left", _("disconnected")
        JOB_ENDED = "job_ended", _("replica ended")
        RIGHT_LOST = "right_lost", _("access revoked")
        ASKED = "asked", _("ended by a user")
        LOST = "lost", _("connection lost")

    key = models.CharField(max_length=32, unique=True, default=new_entry_key, editable=False)
    kind = models.CharField(_("access method"), max_length=8, choices=Kind)
    replica = models.ForeignKey(Replica, models.CASCADE, related_name="entries", verbose_name=_("replica"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="entries", verbose_name=_("user")
    )
    ssh_key = models.ForeignKey(SshKey, models.SET_NULL, null=True, blank=True, related_name="entries")
    session_key = models.CharField(max_length=40, blank=True, editable=False)
    access_key = models.ForeignKey(
        AccessKey, models.SET_NULL, null=True, blank=True, related_name="+", editable=False
    )
    access_token = models.ForeignKey(
        AccessToken, models.SET_NULL, null=True, blank=True, related_name="+", editable=False
    )
    address = models.CharField(_("from"), max_length=64, blank=True)
    begun_at = models.DateTimeField(_("started"), db_default=Now())
    seen_at = models.DateTimeField(_("last activity"), db_default=Now())
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    why = models.CharField(_("reason"), max_length=12, choices=Why, blank=True)
    end_asked_at = models.DateTimeField(_("stop requested"), null=True, blank=True)
    end_asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        verbose_name = _("access session")
        verbose_name_plural = _("access sessions")
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("kind", "seen_at"), condition=models.Q(ended_at=None), name="entries_open"),
        )

    def __str__(self) -> str:
        return f"{self.user} → {self.replica} ({self.kind})"


class TerminalTicket(models.Model):
    """The right to open one terminal, once and soon, given to the holder of an access key or token.

    `digest` is the SHA-256 of the ticket, which is not stored.  The row is deleted when the ticket is used.
    """

    digest = models.CharField(max_length=64, unique=True, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    replica = models.ForeignKey(Replica, models.CASCADE, related_name="+")
    access_key = models.ForeignKey(AccessKey, models.CASCADE, null=True, blank=True, related_name="+")
    access_token = models.ForeignKey(AccessToken, models.CASCADE, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("terminal ticket")
        verbose_name_plural = _("terminal tickets")

    def __str__(self) -> str:
        return f"{self.user} → {self.replica}"
