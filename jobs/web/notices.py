"""What a person was told: the bell in the top bar, and the page behind it."""

from __future__ import annotations

from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from jobs.live import bus
from jobs.notifications import reading
from jobs.web.http import SignedIn, live, page, signed_in

FRAGMENTS = {"notices-list": "jobs/notices/list.html"}


@require_safe
@signed_in
def notices(request: SignedIn) -> HttpResponseBase:
    """The person's notices, newest first."""
    around = live(request)
    before = _number(request.GET.get("before", ""))
    found = reading.listed(request.user, before)
    older = f"{reverse('notices')}?before={found.older}" if found.older else ""
    context = {
        **around,
        "rows": found.rows,
        "live_name": bus.notices_name(request.user.pk),
        "list_url": request.get_full_path(),
        "newest": found.rows[0].pk if found.rows else 0,
        "any_unread": any(row.unread for row in found.rows),
        "previous_url": reverse("notices") if before else "",
        "next_url": older,
    }
    return page(request, "jobs/notices.html", context, fragments=FRAGMENTS)


@require_safe
@signed_in
def bell(request: SignedIn) -> HttpResponseBase:
    """The bell alone, which every page fetches again when there is something new."""
    context = {"unread_notices": reading.unread(request.user)}
    return page(request, "jobs/notices/bell.html", context)


@require_POST
@signed_in
def mark_read(request: SignedIn) -> HttpResponseBase:
    """Everything up to the notice that the page showed first has been read."""
    reading.read(request.user, _number(request.POST.get("up_to", "")))
    return redirect("notices")


def _number(text: str) -> int:
    """A notice's number; 0 for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else 0
