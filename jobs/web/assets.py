"""Assets: the lists, one with its checks and uses, and the forms of those who manage them."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.assets import changes, check_requests, visibility
from jobs.assets.forms import FORMS, VersionForm
from jobs.messages.assets import asset_message
from jobs.messages.dataset_copies import copy_message
from jobs.models import (
    Asset,
    AssetCheck,
    AssetKind,
    AssetUse,
    Dataset,
    DatasetCopy,
    DatasetVersion,
    Job,
)
from jobs.web.http import SignedIn, number, page, signed_in, slice_before
from quotas.access import administers, workspaces_of
from quotas.models import Spec, User

PAGE: Final = 50
MOST_CHECKS: Final = 5
SPECS: Final = "specs"

LABELS: Final = {
    AssetKind.IMAGE: gettext_lazy("Images"),
    AssetKind.DATASET: gettext_lazy("Datasets"),
    AssetKind.CODE: gettext_lazy("Code sources"),
    AssetKind.VPC: gettext_lazy("VPCs"),
    AssetKind.ROLE: gettext_lazy("RAM roles"),
    SPECS: gettext_lazy("Instance specs"),
}

NEW: Final = {
    AssetKind.IMAGE: gettext_lazy("New image"),
    AssetKind.DATASET: gettext_lazy("New dataset"),
    AssetKind.CODE: gettext_lazy("New code source"),
    AssetKind.VPC: gettext_lazy("New VPC"),
    AssetKind.ROLE: gettext_lazy("New RAM role"),
}

HINTS: Final = {
    AssetKind.IMAGE: gettext_lazy(
        "Jobs refer to an image by ID, name or address; its registry login is used automatically."
    ),
    AssetKind.DATASET: gettext_lazy(
        "OSS and NAS must be authorized with the vendor before jobs can read them. Jobs that "
        "mount a CPFS must be in its VPC."
    ),
    AssetKind.CODE: gettext_lazy(
        "The job clones the repository at the given commit before its command runs."
    ),
    AssetKind.VPC: gettext_lazy("Used on the vendors' targets. A CPFS is assigned to a VPC."),
    AssetKind.ROLE: gettext_lazy("Permissions of job instances at the vendor; used on its targets."),
    SPECS: gettext_lazy("Predefined sizes and their price per hour."),
}


@require_safe
@signed_in
def assets(request: SignedIn) -> HttpResponseBase:
    """List the assets of one kind by name, with retired ones where the query asks for them."""
    kind = request.GET.get("kind", AssetKind.IMAGE)
    if kind not in LABELS:
        raise Http404
    query = request.GET.get("q", "").strip()[:100]
    after = request.GET.get("after", "")
    if kind == SPECS:
        rows: QuerySet[Any] = _specs(request.user, query)
    else:
        rows = _search(visibility.visible_to(request.user, AssetKind(kind)), AssetKind(kind), query)
        if request.GET.get("retired") != "1":
            rows = rows.filter(retired_at=None)
    found = list(_after(rows, after)[: PAGE + 1])
    more = len(found) > PAGE
    found = found[:PAGE]
    context = {
        "kind": kind,
        "tabs": [{"kind": each, "label": label, "here": each == kind} for each, label in LABELS.items()],
        "hint": HINTS[kind],
        "rows": found,
        "query": query,
        "retired": request.GET.get("retired") == "1",
        "may_add": kind != SPECS and _may_add(request.user),
        "new_label": NEW.get(AssetKind(kind)) if kind != SPECS else "",
        "next_url": _next(request, found[-1]) if more else "",
    }
    return page(request, "jobs/assets.html", context)


def _specs(user: User, query: str) -> QuerySet[Spec]:
    ours = Q(workspace=None) | Q(workspace__in=workspaces_of(user))
    rows = Spec.objects.filter(ours, offered=True, name__icontains=query)
    return rows.select_related("cluster", "workspace")


def _search(rows: QuerySet[Any], kind: AssetKind, query: str) -> QuerySet[Any]:
    if not query:
        return rows
    where = {
        AssetKind.IMAGE: "address",
        AssetKind.CODE: "repo",
        AssetKind.VPC: "vpc_id",
        AssetKind.ROLE: "arn",
    }
    found = Q(name__icontains=query) | Q(key__iexact=query) | Q(description__icontains=query)
    if kind in where:
        found |= Q(**{f"{where[kind]}__icontains": query})
    return rows.filter(found)


def _after(rows: QuerySet[Any], after: str) -> QuerySet[Any]:
    """Return the rows after a key, ordered by name."""
    text, _mark, name = after.partition(":")
    if (key := number(text)) is not None:
        rows = rows.filter(Q(name__gt=name) | Q(name=name, id__gt=key))
    return rows.order_by("name", "id")


def _next(request: SignedIn, last: Any) -> str:
    query = request.GET.copy()
    query["after"] = f"{last.pk}:{last.name}"
    return f"{request.path}?{query.urlencode()}"


def _may_add(user: User) -> bool:
    return administers(user) or visibility.keepable(user).exists()


# --- one of them -----------------------------------------------------------------------------------------


def _find(request: SignedIn, kind: str, key: str) -> Asset:
    asset = visibility.find(request.user, kind, key)
    if asset is None:
        raise Http404
    return asset


def _find_managed(request: SignedIn, kind: str, key: str) -> Asset:
    asset = _find(request, kind, key)
    if not visibility.may_keep(request.user, asset):
        raise PermissionDenied(_("Only the asset's managers can change it."))
    return asset


def _to(asset: Asset) -> HttpResponse:
    return redirect("asset", asset.KIND, asset.key)


@require_safe
@signed_in
def asset(request: SignedIn, kind: str, key: str) -> HttpResponseBase:
    """Show an asset, its versions, its checks and its uses."""
    return _show(request, _find(request, kind, key))


def _show(
    request: SignedIn, found: Asset, *, version_form: VersionForm | None = None, status: int = 200
) -> HttpResponse:
    checks = list(_list_checks(request.user, found))
    copy: DatasetCopy | None = getattr(found, "copy", None)
    context: dict[str, Any] = {
        "asset": found,
        "copy": copy,
        "copy_message": copy_message(copy.code, copy.detail) if copy and copy.code else "",
        "checks": [_check_context(row) for row in checks],
        "going": any(not row.is_over for row in checks),
    }
    if not request.htmx:
        uses, next_url = _list_uses(request, found)
        dataset = found if isinstance(found, Dataset) else None
        context |= {
            "facts": _list_facts(found),
            "copy_job": _find_source(request.user, copy),
            "may_keep": visibility.may_keep(request.user, found),
            "may_try": check_requests.can_check(found)
            and check_requests.find_quota(request.user, found) is not None,
            "tried_kind": check_requests.can_check(found),
            "versions": dataset.versions.all() if dataset else None,
            "version_form": version_form or (VersionForm(dataset) if dataset and not copy else None),
            "uses": uses,
            "next_url": next_url,
            "used": changes.count_jobs(found),
            "list_url": f"{reverse('assets')}?kind={found.KIND}",
        }
    return page(
        request,
        "jobs/assets/asset.html",
        context,
        fragments={"checks": "jobs/assets/checks.html", "copy": "jobs/assets/copy.html"},
        status=status,
    )


def _find_source(user: User, copy: DatasetCopy | None) -> Job | None:
    """Return the job that the folder is of, when the person may know of it."""
    return Job.objects.visible_to(user).filter(pk=copy.job_id).first() if copy and copy.job_id else None


def _list_facts(found: Asset) -> list[dict[str, Any]]:
    """Return the asset's fields, without those that are empty, secret or shown elsewhere."""
    hidden = {"id", "key", "name", "description", "workspace", "retired_at", "created_by", "created_at"}
    hidden |= {"updated_at", "ciphertext", "access_key_id"}
    facts = []
    for field in found._meta.concrete_fields:  # noqa: SLF001 the way to a model's fields
        if field.name in hidden:
            continue
        shown = getattr(found, f"get_{field.name}_display", lambda name=field.name: getattr(found, name))()
        if isinstance(shown, bool):
            shown = _("yes") if shown else _("no")
        elif isinstance(shown, list):
            shown = ", ".join(shown)
        elif isinstance(shown, dict):
            shown = ", ".join(f"{name}={value}" for name, value in shown.items())
        if shown not in ("", None):
            facts.append({"label": field.verbose_name, "value": shown})
    return facts


def _list_checks(user: User, found: Asset) -> QuerySet[AssetCheck]:
    """Return the person's own checks, newest first: messages of others' checks may be private."""
    rows = AssetCheck.objects.filter(kind=found.KIND, key=found.key, asker=user)
    return rows.select_related("cluster").order_by("-id")[:MOST_CHECKS]


def _check_context(row: AssetCheck) -> dict[str, Any]:
    return {
        "row": row,
        "message": asset_message(row.code) if row.code else "",
        "seconds": (row.ended_at - row.begun_at).total_seconds() if row.ended_at and row.begun_at else None,
    }


def _list_uses(request: SignedIn, found: Asset) -> tuple[list[AssetUse], str]:
    """Return the asset's uses in the person's workspaces, newest first, and the next page's query."""
    rows = AssetUse.objects.filter(
        kind=found.KIND, key=found.key, job__workspace__in=workspaces_of(request.user)
    )
    rows = rows.select_related("job__owner", "job__workspace")
    shown, following = slice_before(rows, request.GET.get("before", ""), PAGE)
    return shown, f"?before={following}" if following else ""


# --- keeping them ----------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new(request: SignedIn, kind: str) -> HttpResponseBase:
    """Add an asset."""
    if kind not in set(AssetKind):
        raise Http404
    if not _may_add(request.user):
        raise PermissionDenied(_("Assets are managed by workspace admins and algorithm O&M admins."))
    form = FORMS[AssetKind(kind)](request.user, request.POST or None, initial={"workspace": _usual(request)})
    if request.method == "POST" and form.is_valid():
        made = form.save()
        notes.success(request, _("“%(name)s” was added.") % {"name": made.name})
        return _to(made)
    return _form(request, form, AssetKind(kind))


def _usual(request: SignedIn) -> int | None:
    return visibility.keepable(request.user).values_list("pk", flat=True).first()


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def edit(request: SignedIn, kind: str, key: str) -> HttpResponseBase:
    """Change an asset."""
    found = _find_managed(request, kind, key)
    form = FORMS[found.KIND](request.user, request.POST or None, instance=found)
    if request.method == "POST" and form.is_valid():
        notes.success(request, _("Saved."))
        return _to(form.save())
    return _form(request, form, found.KIND, found)


def _form(
    request: SignedIn, form: ModelForm[Any], kind: AssetKind, found: Asset | None = None
) -> HttpResponse:
    title = _("Change %(name)s") % {"name": found.name} if found else NEW[kind]
    context = {
        "form": form,
        "title": title,
        "hint": HINTS[kind],
        "back_url": reverse("asset", args=[kind, found.key]) if found else f"{reverse('assets')}?kind={kind}",
    }
    return page(request, "jobs/assets/form.html", context, status=422 if form.is_bound else 200)


@require_POST
@signed_in
def delete(request: SignedIn, kind: str, key: str) -> HttpResponseBase:
    """Delete an asset, or retire it when jobs use it."""
    found = _find_managed(request, kind, key)
    if changes.take_away(found):
        notes.success(request, _("“%(name)s” was deleted.") % {"name": found.name})
        return redirect(f"{reverse('assets')}?kind={kind}")
    notes.success(request, _("“%(name)s” was retired because jobs use it.") % {"name": found.name})
    return _to(found)


@require_POST
@signed_in
def restore(request: SignedIn, kind: str, key: str) -> HttpResponseBase:
    """Restore a retired asset."""
    found = _find_managed(request, kind, key)
    changes.bring_back(found)
    notes.success(request, _("“%(name)s” is available again.") % {"name": found.name})
    return _to(found)


@require_POST
@signed_in
def version_new(request: SignedIn, kind: str, key: str) -> HttpResponseBase:
    """Add a version of a dataset."""
    found = _find_managed(request, kind, key)
    if not isinstance(found, Dataset):
        raise Http404
    form = VersionForm(found, request.POST)
    if not form.is_valid():
        return _show(request, found, version_form=form, status=422)
    made = changes.add_version(
        found, form.cleaned_data["uri"], by=request.user, description=form.cleaned_data["description"]
    )
    notes.success(request, _("Version %(number)s was added.") % {"number": made.number})
    return _to(found)


@require_POST
@signed_in
def version_choose(request: SignedIn, kind: str, key: str, number: int) -> HttpResponseBase:
    """Make a version the dataset's default."""
    found = _find_managed(request, kind, key)
    version = DatasetVersion.objects.filter(dataset__key=found.key, number=number).first()
    if kind != AssetKind.DATASET or version is None:
        raise Http404
    changes.choose_version(version)
    return _to(found)


@require_POST
@signed_in
def check(request: SignedIn, kind: str, key: str) -> HttpResponseBase:
    """Request a check of the asset; its page shows the result."""
    found = _find(request, kind, key)
    try:
        check_requests.request_check(request.user, found, number(request.POST.get("version"), 8))
    except check_requests.CheckRefused as shut:
        notes.warning(request, asset_message(shut.code))
    return redirect(f"{reverse('asset', args=[kind, key])}#checks")
