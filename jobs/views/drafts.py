"""What somebody typed and has not submitted: kept by itself, found again, thrown away only on request."""

from __future__ import annotations

from typing import Final

from django.contrib import messages as notes
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from jobs import dialects, services
from jobs.dialects.base import MAX_BYTES, Refused
from jobs.models import Draft
from jobs.views.http import SignedIn, page, signed_in
from quotas.models import User

MOST: Final = 200


@require_safe
@signed_in
def drafts(request: SignedIn) -> HttpResponseBase:
    """The person's drafts, the last changed first."""
    rows = Draft.objects.filter(owner=request.user).select_related("origin").order_by("-updated_at")[:MOST]
    return page(request, "jobs/drafts.html", {"drafts": rows})


@require_POST
@signed_in
def save_draft(request: SignedIn) -> HttpResponseBase:
    """Keep what stands in the form: the page does this by itself while somebody types."""
    asked = request.POST.get("dialect", "")
    dialect = asked if asked in dialects.NAMES else None
    draft = keep(request.user, request.POST.get("draft", ""), request.POST.get("text", ""), dialect)
    return page(request, "jobs/new/draft.html", {"draft": draft})


@require_POST
@signed_in
def delete_draft(request: SignedIn, pk: int) -> HttpResponseBase:
    """Throw a draft away."""
    get_object_or_404(Draft, pk=pk, owner=request.user).delete()
    notes.success(request, _("The draft was deleted."))
    return redirect("drafts")


def find(user: User, pk: str) -> Draft | None:
    """The person's own draft of that number; None for anything else."""
    if not (pk.isascii() and pk.isdigit() and len(pk) < 19):
        return None
    return Draft.objects.filter(owner=user, pk=int(pk)).first()


def keep(user: User, pk: str, text: str, dialect: str | None = None) -> Draft | None:
    """Save `text` into that draft, or into a new one.  Nothing is kept where nothing was ever typed.

    `dialect` is the one that the person chose.
    """
    draft = find(user, pk)
    if draft is None and not text.strip():
        return None
    kept = text[:MAX_BYTES].replace("\r\n", "\n").replace("\0", "")
    return services.save_draft(
        user, draft, {"text": kept, "name": _name(kept, dialect), "dialect": dialect or ""}
    )


def _name(text: str, dialect: str | None) -> str:
    """The job's name in it, as soon as the text can be read."""
    try:
        return dialects.parse(text, dialect)[1].spec.name
    except Refused:
        return ""
