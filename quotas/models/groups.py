"""Groups of a directory or a provider, and which rights they give."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from quotas.models.audit_base import Audited
from quotas.models.workspaces import Role, Workspace


class GroupMapping(Audited):
    """A rule: members of `group` of `source` have `role` in `workspace`, or are superusers."""

    source = models.CharField(
        _("source"),
        max_length=64,
        help_text=_("“ldap”, or the name of an OIDC provider in CONSOLE_OIDC."),
    )
    group = models.CharField(
        _("group"),
        max_length=500,
        help_text=_("Group name as sent by the provider. For LDAP: the common name or distinguished name."),
    )
    workspace = models.ForeignKey(
        Workspace,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="group_mappings",
        verbose_name=_("workspace"),
    )
    role = models.CharField(_("role"), max_length=16, choices=Role, default=Role.DEVELOPER)
    superuser = models.BooleanField(
        _("superuser"),
        default=False,
        help_text=_("All members of the group become superusers of the console. Leave the workspace empty."),
    )

    class Meta:
        verbose_name = _("group mapping")
        verbose_name_plural = _("group mappings")
        ordering = ("source", "group")
        constraints = (
            models.UniqueConstraint(fields=("source", "group", "workspace"), name="one_mapping"),
            models.UniqueConstraint(
                fields=("source", "group"),
                condition=models.Q(workspace=None),
                name="one_mapping_to_superuser",
            ),
            models.CheckConstraint(
                condition=models.Q(superuser=True, workspace=None)
                | models.Q(superuser=False, workspace__isnull=False),
                name="workspace_or_superuser",
                violation_error_message=_("Select either a workspace or “superuser”."),
            ),
        )

    def __str__(self) -> str:
        return f"{self.source}: {self.group}"


class PersonGroup(models.Model):
    """A group of a person, as a source last reported it.  Only groups that came from there are here."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="person_groups", verbose_name=_("user")
    )
    source = models.CharField(_("source"), max_length=64)
    group = models.CharField(_("group"), max_length=500)

    class Meta:
        verbose_name = _("user group")
        verbose_name_plural = _("user groups")
        constraints = (models.UniqueConstraint(fields=("user", "source", "group"), name="one_person_group"),)

    def __str__(self) -> str:
        return f"{self.user} · {self.source}: {self.group}"
