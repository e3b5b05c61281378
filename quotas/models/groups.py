"""Groups of people, of a directory, a provider or an admin, and which rights they give."""

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


class LocalGroup(Audited):
    """People whom an admin put together; they have its roles, as those of a directory's group have."""

    name = models.CharField(_("name"), max_length=100, unique=True)
    description = models.CharField(_("description"), max_length=500, blank=True)
    people = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="local_groups", verbose_name=_("people")
    )

    class Meta:
        verbose_name = _("local group")
        verbose_name_plural = _("local groups")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class LocalGroupRole(Audited):
    """The role that everybody in a local group has in a workspace."""

    group = models.ForeignKey(LocalGroup, models.CASCADE, related_name="roles", verbose_name=_("local group"))
    workspace = models.ForeignKey(
        Workspace, models.CASCADE, related_name="local_group_roles", verbose_name=_("workspace")
    )
    role = models.CharField(_("role"), max_length=16, choices=Role, default=Role.DEVELOPER)

    class Meta:
        verbose_name = _("role of a local group")
        verbose_name_plural = _("roles of a local group")
        constraints = (models.UniqueConstraint(fields=("group", "workspace"), name="one_local_group_role"),)

    def __str__(self) -> str:
        return f"{self.group} · {self.workspace}"
