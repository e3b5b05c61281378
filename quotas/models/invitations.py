"""Invitations into workspaces, and service accounts."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.models.audit_base import Audited
from quotas.models.workspaces import Role, Workspace


class Invitation(Audited):
    """A link that lets one person into a workspace, once, for a while.

    Its secret is stored as a digest.  `mailed` says that the link went to `email` and to nobody else, so
    that whoever comes by it has that address.
    """

    workspace = models.ForeignKey(
        Workspace, models.CASCADE, related_name="invitations", verbose_name=_("workspace")
    )
    role = models.CharField(_("role"), max_length=16, choices=Role, default=Role.DEVELOPER)
    email = models.EmailField(_("e-mail address"), blank=True)
    mailed = models.BooleanField(default=False, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", verbose_name=_("invited by")
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)
    accepted_at = models.DateTimeField(_("accepted"), null=True, blank=True)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("accepted by"),
    )

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.email or f"{self.workspace} · {self.get_role_display()}"


class ServiceAccount(Audited):
    """A service account's workspace, contact and purpose, beside its row among the users."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="service_account", verbose_name=_("user")
    )
    workspace = models.ForeignKey(
        Workspace, models.CASCADE, related_name="service_accounts", verbose_name=_("workspace")
    )
    contact = models.CharField(
        _("contact"), max_length=200, help_text=_("Person responsible: a name or e-mail address.")
    )
    about = models.CharField(_("purpose"), max_length=200, blank=True)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("created by")
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("service account")
        verbose_name_plural = _("service accounts")
        ordering = ("user__username",)

    def __str__(self) -> str:
        return str(self.user)
