"""Job templates that people keep, their versions, and the jobs that were started from them."""

from __future__ import annotations

import secrets
import string
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobs.models.jobs import Job
from quotas.access import Visitor, is_active, managed_by, workspaces_of
from quotas.models import User, Workspace
from quotas.models.audit_base import Audited


def new_template_id() -> str:
    """Never the id of a shipped one: those are words."""
    return "t-" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _i in range(12))


class TemplateQuerySet(models.QuerySet["Template"]):
    """Every page and every submission starts at `visible_to`."""

    def visible_to(self, user: Visitor) -> Self:
        """Return one's own, those of one's workspaces, and those proposed to workspaces that one manages."""
        if not isinstance(user, User) or not is_active(user):
            return self.none()
        mine = Q(workspace=None, owner=user)
        theirs = Q(workspace__in=workspaces_of(user))
        proposed = Q(workspace=None, proposed_to__in=managed_by(user))
        return self.filter(mine | theirs | proposed)

    def offered_to(self, user: Visitor) -> Self:
        """Return the templates that the person may start from."""
        mine = Q(owner=user if isinstance(user, User) else None)
        return self.visible_to(user).filter(mine | Q(workspace__isnull=False), retired_at=None)


class Template(Audited):
    """A job file with questions and locks, of one person or of a workspace; its versions say what it is.

    `default_number` is the version that one gets without asking for another.  One that is retired starts
    nothing any more, and stays for the jobs that came from it.
    """

    public_id = models.CharField(_("ID"), max_length=16, unique=True, default=new_template_id)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="templates")
    workspace = models.ForeignKey(
        Workspace,
        models.PROTECT,
        related_name="templates",
        null=True,
        blank=True,
        verbose_name=_("workspace"),
    )
    proposed_to = models.ForeignKey(
        Workspace, models.SET_NULL, related_name="+", null=True, blank=True, verbose_name=_("proposed to")
    )
    name = models.CharField(_("name"), max_length=80)
    description = models.TextField(_("description"), max_length=2000, blank=True)
    icon = models.CharField(_("icon"), max_length=32, default="bolt")
    default_number = models.IntegerField(_("default version"), default=1)
    latest_number = models.IntegerField(_("latest version"), default=0)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)
    retired_at = models.DateTimeField(_("retired"), null=True, blank=True)

    objects = TemplateQuerySet.as_manager()

    class Meta:
        verbose_name = _("job template")
        verbose_name_plural = _("job templates")
        ordering = ("name", "id")

    def __str__(self) -> str:
        return self.name


class TemplateVersion(models.Model):
    """One version of a template; it never changes.

    `content` is a job file without secret values; `parameters` and `constraints` are as
    `jobs.jobtemplates.JobTemplate` reads them.
    """

    template = models.ForeignKey(Template, models.CASCADE, related_name="versions")
    number = models.IntegerField(_("version"))
    dialect = models.CharField(_("format"), max_length=32)
    content = models.TextField(_("job file"))
    parameters = models.JSONField(_("parameters"), default=list, blank=True)
    constraints = models.JSONField(_("constraints"), default=dict, blank=True)
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)
    notes = models.CharField(_("change notes"), max_length=400, blank=True)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    made_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("job template version")
        verbose_name_plural = _("job template versions")
        ordering = ("-number",)
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=("template", "number"), name="one_template_version"),
        ]

    def __str__(self) -> str:
        return f"{self.template} · {self.number}"


class TemplateUse(models.Model):
    """The template version that a job came from: a stored one, or, by its id, a shipped one."""

    job = models.OneToOneField(Job, models.CASCADE, related_name="from_template", primary_key=True)
    version = models.ForeignKey(TemplateVersion, models.PROTECT, related_name="uses", null=True, blank=True)
    shipped = models.CharField(_("built-in template"), max_length=64, blank=True)
    number = models.IntegerField(_("version"), default=1)

    class Meta:
        verbose_name = _("job template use")
        verbose_name_plural = _("job template uses")
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(version__isnull=True) ^ Q(shipped=""), name="kept_or_shipped_template"
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("shipped", "job"), name="jobs_of_shipped_template"),
        ]

    def __str__(self) -> str:
        return f"{self.shipped or self.version} · {self.number}"
