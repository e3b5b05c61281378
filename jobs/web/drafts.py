"""What somebody typed and has not submitted: kept by itself, found again, thrown away only on request."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages as notes
from django.db.models import Count
from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import replace_url

from jobs import dialects
from jobs.dialects.document import Document
from jobs.models import Draft, Job
from jobs.submission import drafts
from jobs.submission.drafts import Kept, Typed
from jobs.web.http import SignedIn, page, signed_in

MOST: Final = 200


@require_safe
@signed_in
def listed(request: SignedIn) -> HttpResponseBase:
    """The person's drafts, the last changed first."""
    mine = Draft.objects.filter(owner=request.user).select_related("origin")
    rows = mine.annotate(kept=Count("versions")).order_by("-updated_at")[:MOST]
    return page(request, "jobs/drafts.html", {"drafts": rows})


@require_POST
@signed_in
def save_draft(request: SignedIn) -> HttpResponseBase:
    """Keep what stands in the form: the page does this by itself while somebody types."""
    pk = request.POST.get("draft", "")
    kept = drafts.keep(request.user, pk, typed(request.POST), origin(request))
    response = page(request, "jobs/new/draft.html", told(kept))
    if kept and str(kept.draft.pk) != pk:
        # From now on a reload, or a browser that comes back after a crash, finds the draft by itself.
        replace_url(response, address_of(kept.draft))
    return response


@require_safe
@signed_in
def versions(request: SignedIn, pk: int) -> HttpResponseBase:
    """What a draft was, the latest first, and what other windows have beside it."""
    draft = get_object_or_404(Draft, pk=pk, owner=request.user)
    rows = draft.versions.order_by("-saved_at", "-pk")
    return page(request, "jobs/drafts/versions.html", {"draft": draft, "versions": rows})


@require_safe
@signed_in
def draft_file(request: SignedIn, pk: int) -> HttpResponseBase:
    """The draft's text, for what is compared with it."""
    draft = get_object_or_404(Draft, pk=pk, owner=request.user)
    response = HttpResponse(draft.text, content_type="text/plain; charset=utf-8")
    patch_cache_control(response, private=True, no_store=True)
    return response


@require_POST
@signed_in
def delete_draft(request: SignedIn, pk: int) -> HttpResponseBase:
    """Throw a draft away."""
    get_object_or_404(Draft, pk=pk, owner=request.user).delete()
    notes.success(request, _("The draft was deleted."))
    return redirect("drafts")


def typed(sent: QueryDict, document: Document | None = None) -> Typed:
    """What a window sent with its form; `document` is its job file, where that was read already."""
    asked = sent.get("dialect", "")
    version = sent.get("draft_version", "")
    return Typed(
        document=document or Document(sent.get("text", ""), asked if asked in dialects.NAMES else None),
        place=sent.get("place", ""),
        template=sent.get("template", ""),
        sweep=sent.get("sweep_parameters", ""),
        at_once=sent.get("sweep_at_once", ""),
        window=sent.get("key", "")[:64],
        version=int(version) if version.isascii() and version.isdigit() and len(version) < 10 else None,
        take="take" in sent,
    )


def told(kept: Kept | None) -> dict[str, Any]:
    """What the form says of its draft."""
    if kept is None:
        return {"draft": None}
    known = kept.beside.number if kept.beside else kept.draft.version
    return {"draft": kept.draft, "draft_version": known, "beside": kept.beside}


def address_of(draft: Draft) -> str:
    """Where the draft is gone on with."""
    return f"{reverse('job_new')}?draft={draft.pk}"


def origin(request: SignedIn) -> Job | None:
    """The job that the form came from, if the person can still see it."""
    public_id = request.POST.get("origin", "") or "-"
    return Job.objects.visible_to(request.user).filter(public_id=public_id).first()
