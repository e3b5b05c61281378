"""A workspace's quotas and job policies: its admins split them and set limits within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from jobs.live import triggers
from jobs.web.http import SignedIn, page, signed_in
from quotas import ledger
from quotas.access import administered_by, workspaces_of
from quotas.ledger import reports
from quotas.limits.treeform import in_order
from quotas.limits.workspace_forms import (
    ChildQuotaForm,
    JobPolicyForm,
    check_deletable,
    is_child,
    splittable,
)
from quotas.models import JobPolicy, Quota, Workspace


@dataclass(frozen=True, slots=True)
class WorkspaceQuota:
    """A quota in the workspace's tree, with its use and its policies."""

    quota: Quota
    depth: int
    is_ours: bool
    gpus_used: int
    jobs_used: int
    policies: Sequence[JobPolicy]


def _workspace(request: SignedIn, slug: str) -> Workspace:
    """Return the workspace of an admin; strangers do not learn that there is one."""
    workspace = workspaces_of(request.user).filter(slug=slug).first()
    if workspace is None:
        raise Http404
    if not administered_by(request.user).filter(pk=workspace.pk).exists():
        raise PermissionDenied(_("Only admins of the workspace can do this."))
    return workspace


@require_safe
@signed_in
def workspace_quotas(request: SignedIn, slug: str) -> HttpResponseBase:
    """Show the workspace's quotas as a tree, with their policies."""
    workspace = _workspace(request, slug)
    rows = Quota.objects.filter(workspace=workspace).select_related("cluster", "workspace", "parent")
    quotas = list(rows.order_by("cluster_id", "name"))
    uses = {use.quota.pk: use for use in reports.quotas_of(request.user)}
    policies: dict[int, list[JobPolicy]] = {}
    for policy in JobPolicy.objects.filter(quota__in=quotas).select_related("user"):
        policies.setdefault(policy.quota_id, []).append(policy)
    shown = [
        WorkspaceQuota(
            quota,
            depth,
            is_child(quota),
            uses[quota.pk].held.gpu_count if quota.pk in uses else 0,
            uses[quota.pk].holders if quota.pk in uses else 0,
            policies.get(quota.pk, []),
        )
        for quota, depth in in_order(quotas)
    ]
    context = {
        "workspace": workspace,
        "rows": shown,
        "can_split": splittable(workspace).exists(),
    }
    return page(request, "jobs/workspace_quotas.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new_quota(request: SignedIn, slug: str) -> HttpResponseBase:
    """Add a part of one of the workspace's quotas."""
    workspace = _workspace(request, slug)
    form = ChildQuotaForm(workspace, request.POST if request.method == "POST" else None)
    return _edit(request, workspace, form, _("Split a quota"))


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def change_quota(request: SignedIn, slug: str, pk: int) -> HttpResponseBase:
    """Change or delete a part of one of the workspace's quotas."""
    workspace = _workspace(request, slug)
    quota = Quota.objects.filter(workspace=workspace, pk=pk).select_related("parent", "cluster").first()
    if quota is None:
        raise Http404
    if not is_child(quota):
        raise PermissionDenied(_("Only console admins can change this quota."))
    if "delete" in request.POST:
        try:
            check_deletable(quota)
        except ValidationError as problem:
            notes.error(request, problem.messages[0])
        else:
            quota.delete()
            notes.success(request, _("%(name)s was deleted.") % {"name": quota.title})
        return redirect("workspace_quotas", slug)
    form = ChildQuotaForm(workspace, request.POST if request.method == "POST" else None, quota)
    return _edit(request, workspace, form, quota.title)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new_policy(request: SignedIn, slug: str) -> HttpResponseBase:
    """Add a job policy of the workspace."""
    workspace = _workspace(request, slug)
    form = JobPolicyForm(workspace, request.POST if request.method == "POST" else None)
    return _edit(request, workspace, form, _("New job policy"))


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def change_policy(request: SignedIn, slug: str, pk: int) -> HttpResponseBase:
    """Change or delete a job policy that the workspace set."""
    workspace = _workspace(request, slug)
    policy = JobPolicy.objects.filter(quota__workspace=workspace, pk=pk).select_related("quota").first()
    if policy is None:
        raise Http404
    if not policy.by_workspace:
        raise PermissionDenied(_("Only console admins can change this policy."))
    if "delete" in request.POST:
        policy.delete()
        triggers.trigger_on_commit("drain", policy.quota.cluster_id)
        notes.success(request, _("%(name)s was deleted.") % {"name": policy})
        return redirect("workspace_quotas", slug)
    form = JobPolicyForm(workspace, request.POST if request.method == "POST" else None, policy)
    return _edit(request, workspace, form, str(policy))


def _edit(
    request: SignedIn, workspace: Workspace, form: ChildQuotaForm | JobPolicyForm, title: str
) -> HttpResponseBase:
    back = reverse("workspace_quotas", args=[workspace.slug])
    if form.is_bound and form.is_valid():
        cluster_id = _cluster_of(form.instance)
        with ledger.lock_cluster(cluster_id):
            form.save()
            triggers.trigger_on_commit("drain", cluster_id)
        notes.success(request, _("Saved."))
        return redirect(back)
    context: dict[str, Any] = {
        "workspace": workspace,
        "form": form,
        "title": title,
        "back_url": back,
        "can_delete": form.instance.pk is not None,
    }
    return page(request, "jobs/workspace_quotas/form.html", context, status=422 if form.is_bound else 200)


def _cluster_of(row: models.Model) -> int:
    if isinstance(row, JobPolicy):
        return row.quota.cluster_id
    assert isinstance(row, Quota)
    return row.cluster_id
