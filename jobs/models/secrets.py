"""Secrets: write-only values, encrypted at rest."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job
from quotas import encryption
from quotas.models.audit_base import Audited


class Secret(models.Model):
    """A named value that is never shown again."""

    name = models.CharField(_("name"), max_length=200)
    ciphertext = models.TextField(editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    def encrypt(self, value: str) -> None:
        """Encrypt `value` into this row (not saved)."""
        self.ciphertext = encryption.encrypt(value)

    def reveal(self) -> str:
        """Return the value, for the backend only."""
        return encryption.decrypt(self.ciphertext)


class JobSecret(Secret):
    """A secret that came with a job file; gone with the job."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="secrets", verbose_name=_("job"))

    class Meta:
        verbose_name = _("job secret")
        verbose_name_plural = _("job secrets")
        constraints = (models.UniqueConstraint(fields=("job", "name"), name="one_job_secret"),)


class PersonalSecret(Audited, Secret):
    """A secret that a person keeps to name in jobs (HF_TOKEN …)."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="secrets", verbose_name=_("owner")
    )

    class Meta:
        verbose_name = _("personal secret")
        verbose_name_plural = _("personal secrets")
        constraints = (models.UniqueConstraint(fields=("owner", "name"), name="one_personal_secret"),)
