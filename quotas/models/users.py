"""People and service accounts."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.models import single_person, unixnames
from quotas.models.audit_base import Audited


class User(Audited, AbstractUser):
    """A person who signs in, or a service account, which does not.

    Their primary key is their number at the engines and is never reused.  What a directory or a provider
    gave (`admin_by_groups`, `unix_name_from`) or took (`disabled_by`) it may take and give back; what
    an admin did by hand it never touches.
    """

    class Theme(models.TextChoices):
        AUTO = "auto", _("System")
        LIGHT = "light", _("Light")
        DARK = "dark", _("Dark")

    class Kind(models.TextChoices):
        PERSON = "person", _("User")
        SERVICE = "service", _("Service account")

    language = models.CharField(_("language"), max_length=16, blank=True)
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True)
    theme = models.CharField(_("theme"), max_length=8, choices=Theme, default=Theme.AUTO)
    kind = models.CharField(_("kind"), max_length=8, choices=Kind, default=Kind.PERSON, editable=False)
    break_glass = models.BooleanField(
        _("break-glass account"),
        default=False,
        help_text=_("Can sign in with a console password even if SSO is required."),
    )
    directory_dn = models.CharField(
        _("LDAP distinguished name"),
        max_length=500,
        blank=True,
        help_text=_("The user's distinguished name in LDAP. Empty: no LDAP sign-in to this account."),
    )
    directory_id = models.CharField(max_length=64, blank=True, editable=False)
    admin_by_groups = models.BooleanField(_("superuser via group"), default=False, editable=False)
    unix_name = models.CharField(
        _("UNIX name"),
        max_length=unixnames.LONGEST,
        blank=True,
        validators=[unixnames.check],
        help_text=_("UNIX user that runs this user's jobs on clusters with per-user identities."),
    )
    unix_name_from = models.CharField(_("UNIX name source"), max_length=64, blank=True, editable=False)
    disabled_by = models.CharField(_("disabled by"), max_length=64, blank=True, editable=False)

    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("people")

    def clean(self) -> None:
        super().clean()
        try:
            single_person.check(self)
        except single_person.OnePersonOnly as refused:
            raise ValidationError(str(refused)) from refused

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save; raise OnePersonOnly for a second active person where only one may be."""
        single_person.check(self)
        super().save(*args, **kwargs)
