"""Drafts: typed job files that are not submitted, saved by themselves, deleted on request."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages as notes
from django.db.models import Count
from django.http import HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import replace_url

from jobs import dialects
from jobs.dialects.document import Document
from jobs.models import Draft, Job
from jobs.submission import drafts
from jobs.submission.drafts import DraftContent, SavedDraft
from jobs.web.http import SignedIn, number, page, signed_in, text_response

MOST: Final = 200


@require_safe
@signed_in
def draft_list(request: SignedIn) -> HttpResponseBase:
    """List the person's drafts, the last changed first."""
    mine = Draft.objects.filter(owner=request.user).select_related("origin")
    rows = mine.annotate(kept=Count("versions")).order_by("-updated_at")[:MOST]
    return page(request, "jobs/drafts.html", {"drafts": rows})


@require_POST
@signed_in
def save_draft(request: SignedIn) -> HttpResponseBase:
    """Save the form as a draft; the page sends it while somebody types."""
    pk = request.POST.get("draft", "")
    saved = drafts.keep(request.user, pk, read_typed(request.POST), find_origin(request))
    response = page(request, "jobs/new/draft.html", draft_context(saved))
    if saved and str(saved.draft.pk) != pk:
        # From now on a reload, or a browser that comes back after a crash, finds the draft by itself.
        replace_url(response, draft_url(saved.draft))
    return response


@require_safe
@signed_in
def versions(request: SignedIn, pk: int) -> HttpResponseBase:
    """Show the versions of a draft, the latest first, and those of other windows."""
    draft = get_object_or_404(Draft, pk=pk, owner=request.user)
    rows = draft.versions.order_by("-saved_at", "-pk")
    return page(request, "jobs/drafts/versions.html", {"draft": draft, "versions": rows})


@require_safe
@signed_in
def draft_file(request: SignedIn, pk: int) -> HttpResponseBase:
    """Return the draft's text, for comparisons."""
    draft = get_object_or_404(Draft, pk=pk, owner=request.user)
    return text_response(draft.text)


@require_POST
@signed_in
def delete_draft(request: SignedIn, pk: int) -> HttpResponseBase:
    """Delete a draft."""
    get_object_or_404(Draft, pk=pk, owner=request.user).delete()
    notes.success(request, _("Draft deleted."))
    return redirect("drafts")


def read_typed(sent: QueryDict, document: Document | None = None) -> DraftContent:
    """Return what a window sent; `document` is its job file, where that was parsed already."""
    return DraftContent(
        document=document or Document(sent.get("text", ""), known_dialect(sent)),
        place=sent.get("place", ""),
        template=sent.get("template", ""),
        sweep=sent.get("sweep_parameters", ""),
        at_once=sent.get("sweep_at_once", ""),
        window=sent.get("key", "")[:64],
        version=number(sent.get("draft_version"), 9),
        take="take" in sent,
    )


def known_dialect(sent: QueryDict) -> str | None:
    """Return the dialect that a form names, or None to detect it."""
    named = sent.get("dialect", "")
    return named if named in dialects.NAMES else None


def typed_document(request: SignedIn) -> Document:
    """Return the job file that was typed, in the dialect that the form names."""
    return Document(request.POST.get("text", "").replace("\r\n", "\n"), known_dialect(request.POST))


def draft_context(saved: SavedDraft | None) -> dict[str, Any]:
    """Return the context about the form's draft."""
    if saved is None:
        return {"draft": None}
    known = saved.beside.number if saved.beside else saved.draft.version
    return {"draft": saved.draft, "draft_version": known, "beside": saved.beside}


def draft_url(draft: Draft) -> str:
    """Return the address that opens the draft."""
    return f"{reverse('job_new')}?draft={draft.pk}"


def find_origin(request: SignedIn) -> Job | None:
    """Return the job that the form was copied from, if the person still sees it."""
    public_id = request.POST.get("origin", "") or "-"
    return Job.objects.visible_to(request.user).filter(public_id=public_id).first()
