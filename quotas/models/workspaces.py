"""Workspaces and who belongs to them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas import egress
from quotas.default_names import Titled
from quotas.models.audit_base import Audited


class Workspace(Titled, Audited):
    """People who work together; every job, quota and asset belongs to one.

    `egress` says where its jobs may connect to (`quotas.egress`), from their next start on.  `vendor_id` is
    what job files and programs written for a vendor call it.
    """

    slug = models.SlugField(_("short name"), max_length=63, unique=True)
    vendor_id = models.CharField(
        _("vendor's ID"),
        max_length=200,
        blank=True,
        help_text=_("WorkspaceId of the job files and programs that are written for PAI-DLC."),
    )
    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True)
    egress = models.JSONField(
        _("network access"), default=egress.internet, blank=True, validators=[egress.validate]
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("workspace")
        verbose_name_plural = _("workspaces")
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("vendor_id",), condition=~models.Q(vendor_id=""), name="one_workspace_of_vendor_id"
            ),
        )

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """The roles of the DLC page (prerequisites), and a reader."""

    VIEWER = "viewer", _("Viewer")
    DEVELOPER = "developer", _("Algorithm developer")
    OPERATOR = "operator", _("Algorithm O&M admin")
    ADMIN = "admin", _("Workspace admin")


class Membership(Audited):
    """One person in one workspace, in one role.

    One that came `by_groups` follows them (`quotas.accounts.groups`); one made by hand is never touched.
    """

    workspace = models.ForeignKey(
        Workspace, models.CASCADE, related_name="memberships", verbose_name=_("workspace")
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships", verbose_name=_("user")
    )
    role = models.CharField(_("role"), max_length=16, choices=Role, default=Role.DEVELOPER)
    by_groups = models.BooleanField(_("via group"), default=False, editable=False)
    created_at = models.DateTimeField(_("since"), auto_now_add=True)

    class Meta:
        verbose_name = _("member")
        verbose_name_plural = _("members")
        constraints = (models.UniqueConstraint(fields=("workspace", "user"), name="one_membership"),)

    def __str__(self) -> str:
        return f"{self.user} · {self.workspace}"
