"""Search of the command palette (Ctrl-K): jobs by the beginning of their name, or by any id."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponseBase, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from jobs import messages
from jobs.states import State
from jobs.web.http import SignedIn, signed_in
from jobs.web.job_list import Filters, list_jobs

MOST: Final = 8


@require_safe
@signed_in
def search(request: SignedIn) -> HttpResponseBase:
    """`{"items": [{"label", "url", "hint", "icon"}]}`, newest first."""
    text = request.GET.get("q", "").strip()[:256]
    items = [
        {
            "label": job.name,
            "url": reverse("job", args=[job.public_id]),
            "hint": f"{messages.state_label(State(job.state))} · {job.public_id}",
            "icon": "list-details",
        }
        for job in (list_jobs(request.user, Filters(q=text), MOST).jobs if text else ())
    ]
    return JsonResponse({"items": items})
