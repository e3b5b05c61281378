"""How long workspaces keep what ended jobs leave, and what other days would remove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.contrib import admin, messages
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from jobs.live import triggers
from jobs.models import RetentionDays, RetentionKind, RetentionPolicy
from jobs.models.retention import KINDS, load_days, load_site_days
from jobs.scheduling import removal
from jobs.scheduling.removal import RemovalEstimate
from quotas.audit import action_record
from quotas.models import Workspace


class RetentionForm(ModelForm[RetentionPolicy]):
    """Days of each kind, of the site or of one workspace."""

    class Meta:
        model = RetentionPolicy
        fields = KINDS

    def __init__(self, *args: Any, site: RetentionDays | None, **kwargs: Any) -> None:
        """`site`: its days where the form is a workspace's."""
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.widget.attrs |= {"class": "house-input", "inputmode": "numeric"}
            days = getattr(site, name) if site else None
            field.widget.attrs["placeholder"] = str(days) if days else _default(name)

    def digest(self) -> str:
        """Return what was entered, so that exactly that is saved which a preview was shown of."""
        return ",".join(str(self.cleaned_data[name] or "") for name in KINDS)


def _default(kind: str) -> str:
    return "1" if kind == "folders" else _("unlimited")


@dataclass(frozen=True, slots=True)
class WorkspaceDays:
    """The days of a workspace as they apply, in the order of KINDS."""

    workspace: Workspace
    days: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class WorkspaceEstimate:
    """An estimate of what would be removed from a workspace, in the order of RetentionKind."""

    workspace: Workspace
    estimates: Sequence[RemovalEstimate]


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, slug: str = "") -> HttpResponse:
    """Show the days of the site or of a workspace, and what other ones would remove; save what was shown."""
    action_record.actor_of(request)
    workspace = get_object_or_404(Workspace, slug=slug) if slug else None
    policy = RetentionPolicy.objects.filter(workspace=workspace).first() or RetentionPolicy(
        workspace=workspace
    )
    site = load_site_days() if workspace else None
    form = RetentionForm(request.POST or None, instance=policy, site=site)
    context: dict[str, Any] = {}
    if request.method == "POST" and form.is_valid():
        if "save" in request.POST and request.POST.get("shown") == form.digest():
            form.save()
            triggers.trigger_on_commit("remove_due")
            messages.success(request, _("Retention saved."))
            return redirect(request.path)
        context = {"shown": form.digest(), "estimates": _estimates(form.instance)}
    context |= {
        **admin.site.each_context(request),
        "title": _("Retention of %(workspace)s") % {"workspace": workspace} if workspace else _("Retention"),
        "workspace": workspace,
        "form": form,
        "columns": [form.fields[name].label for name in KINDS],
        "kinds": [kind.label for kind in RetentionKind],
        "rows": _rows(),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.errors else HTTPStatus.OK
    return TemplateResponse(request, "administration/retention.html", context, status=status)


def _rows() -> list[WorkspaceDays]:
    days = load_days()
    return [
        WorkspaceDays(row, [getattr(days[row.pk], name) for name in KINDS]) for row in Workspace.objects.all()
    ]


def _estimates(proposed: RetentionPolicy) -> list[WorkspaceEstimate]:
    """Return what would be removed at once, of the workspaces with anything."""
    found = removal.estimate(load_days(proposed), timezone.now())
    return [
        WorkspaceEstimate(row, [found[row.pk].get(kind, RemovalEstimate()) for kind in RetentionKind])
        for row in Workspace.objects.filter(pk__in=found)
    ]
