"""The quotas of a cluster as one tree: what is in use beside each limit, changed in place.

What a change would do to what runs and waits is shown before it is saved, and only what was shown is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from jobs.admin.holders import NAMED, find_jobs
from jobs.live import triggers
from jobs.messages import amounts
from jobs.models import Job
from quotas import ledger
from quotas.admission import queue_snapshot, whatif
from quotas.admission.quota_usage import NONE, Used
from quotas.admission.whatif import LimitPreview
from quotas.audit import action_record
from quotas.limits.treeform import QuotaLimitsForm, TreeForm
from quotas.models import AdminAction, Cluster, Quota


@dataclass(frozen=True, slots=True)
class Cell:
    """A limit's field, and what is in use under it."""

    field: Any
    used: str
    percent: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A quota in the tree."""

    quota: Quota
    depth: int
    form: QuotaLimitsForm
    cells: Sequence[Cell]
    waiting: int


@dataclass(frozen=True, slots=True)
class Named:
    """An effect on jobs: the sentence, the first jobs, and how many more."""

    text: str
    jobs: Sequence[Job]
    more: int


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The first cluster's tree."""
    action_record.actor_of(request)
    first = Cluster.objects.order_by("-enabled", "name").first()
    return redirect("admin:quota_tree", first.slug) if first else redirect("admin:quotas_cluster_add")


@require_http_methods(["GET", "HEAD", "POST"])
def tree(request: HttpRequest, slug: str) -> HttpResponse:
    """Show it; show what a change would do; save what was shown."""
    actor = action_record.actor_of(request)
    cluster = get_object_or_404(Cluster, slug=slug)
    if request.method != "POST":
        return _page(request, TreeForm(cluster))
    if "save" not in request.POST:
        form = TreeForm(cluster, request.POST)
        return _page(request, form, shown=form.is_valid())
    with ledger.lock_cluster(cluster.pk):
        form = TreeForm(cluster, request.POST)
        if not form.is_valid():
            return _page(request, form)
        found = whatif.preview(cluster, form.changed)
        accepted = not found.drains or "drain" in request.POST
        if form.digest() != request.POST.get("shown") or not accepted:
            return _page(request, form, shown=True)
        changes = form.save()
        action_record.write_down(actor, AdminAction.Kind.QUOTAS, cluster.name, to=cluster, told=changes)
        triggers.trigger_on_commit("drain", cluster.pk)
    count = len(form.changed)
    text = ngettext("%(count)d quota was changed.", "%(count)d quotas were changed.", count)
    messages.success(request, text % {"count": count})
    return redirect("admin:quota_tree", slug)


def _page(request: HttpRequest, form: TreeForm, *, shown: bool = False) -> HttpResponse:
    problems = [
        (
            each,
            [
                (each.fields[name].label if name in each.fields else "", texts)
                for name, texts in each.errors.items()
            ],
        )
        for each in form.forms
        if each.is_bound and each.errors
    ]
    context = {
        **admin.site.each_context(request),
        "title": _("Quota tree of %(cluster)s") % {"cluster": form.cluster.title},
        "cluster": form.cluster,
        "clusters": Cluster.objects.all(),
        "rows": _rows(form),
        "problems": problems,
    }
    if shown and form.changed:
        found = whatif.preview(form.cluster, form.changed)
        context |= {
            "shown": form.digest(),
            "preview": found,
            "drains": _drains(form, found),
            "named": _effects_on_jobs(found),
            "count": len(form.changed),
        }
    context["unchanged"] = shown and not form.changed
    status = HTTPStatus.UNPROCESSABLE_ENTITY if problems else HTTPStatus.OK
    return TemplateResponse(request, "administration/quota_tree.html", context, status=status)


def _rows(form: TreeForm) -> list[Row]:
    used = whatif.used_of(form.cluster)
    waiting: dict[int, int] = {}
    for verdict in queue_snapshot.queue_of(form.cluster.pk).verdicts.values():
        waiting[verdict.quota_id] = waiting.get(verdict.quota_id, 0) + 1
    return [
        Row(quota, depth, each, _cells(quota, each, used.get(quota.pk, NONE)), waiting.get(quota.pk, 0))
        for (quota, depth), each in zip(form.rows, form.forms, strict=True)
    ]


def _cells(quota: Quota, form: QuotaLimitsForm, used: Used) -> list[Cell]:
    by_type = ", ".join(
        f"{kind}: {count}" for kind, count in sorted(used.gpus_by_type.items()) if kind and count
    )
    return [
        Cell(form["gpus"], str(used.gpus), _percent(used.gpus, quota.gpus)),
        Cell(form["gpus_by_type"], by_type or "0"),
        Cell(
            form["cpu_milli"],
            amounts.quantity("cpu", used.cpu_milli) or "0",
            _percent(used.cpu_milli, quota.cpu_milli),
        ),
        Cell(
            form["memory_mib"], amounts.memory(used.memory_mib), _percent(used.memory_mib, quota.memory_mib)
        ),
        Cell(form["most_jobs"], str(used.jobs), _percent(used.jobs, quota.most_jobs)),
    ]


def _percent(used: int, limit: int | None) -> int | None:
    return None if limit is None else round(100 * used / limit) if limit else 100 * bool(used)


def _drains(form: TreeForm, found: LimitPreview) -> list[str]:
    names = {quota.pk: quota.name for quota, _depth in form.rows}
    text = _("%(quota)s: %(used)s in use, above the limit of %(limit)s.")
    return [
        text
        % {
            "quota": names[each.quota_id],
            "used": amounts.quantity(each.kind, each.used),
            "limit": amounts.quantity(each.kind, each.limit),
        }
        for each in found.drains
    ]


def _effects_on_jobs(found: LimitPreview) -> list[Named]:
    """Return the effects that concern any jobs."""
    groups = [
        (found.starts, _("Would start immediately: %(count)s")),
        (found.waits, _("Would start now, but must wait after the change: %(count)s")),
        (found.never, _("Could no longer start: %(count)s")),
        (found.given_back, _("Would have to return borrowed resources: %(count)s")),
        (found.above, _("Keep running above the new limit: %(count)s")),
    ]
    jobs = find_jobs([holder for holders, _text in groups for holder in holders[:NAMED]])
    return [
        Named(
            text % {"count": len(holders)},
            [jobs[holder] for holder in holders[:NAMED] if holder in jobs],
            max(0, len(holders) - NAMED),
        )
        for holders, text in groups
        if holders
    ]
