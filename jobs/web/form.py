"""The form in step with the job file: a changed field is said in the text, a changed text shown in the form.

Nothing is stored, but for a password that was typed: it goes to the person's secrets, and never comes back.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase, JsonResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST

from jobs import dialects, submission
from jobs.dialects.document import Document
from jobs.form.reading import Applied, read
from jobs.submission import templates
from jobs.submission.forms import SubmitForm
from jobs.web.check import checked
from jobs.web.drafts import origin
from jobs.web.forming.form import draw, posted
from jobs.web.http import SignedIn, signed_in


@require_POST
@signed_in
def change(request: SignedIn) -> HttpResponseBase:
    """`text` and the form's fields → `{"text", "pinned", "form"}`, and what `job_check` answers."""
    return _answer(request, changed=True)


@require_POST
@signed_in
def read_anew(request: SignedIn) -> HttpResponseBase:
    """`text` → the same, with the text as it came: the form is made anew from it."""
    return _answer(request, changed=False)


def _answer(request: SignedIn, *, changed: bool) -> HttpResponseBase:
    text, dialect = request.POST.get("text", "").replace("\r\n", "\n"), request.POST.get("dialect") or None
    if dialect not in (None, *dialects.NAMES):
        return JsonResponse({"problems": []}, status=400)
    document = Document(text, dialect)
    applied = posted(request.user, request.POST, document) if changed else Applied(read(document))
    now = applied.reading
    pinned = document.given if document.given == now.dialect else None
    template = request.POST.get("template", "")
    place = request.POST.get("place", "")
    answer: dict[str, Any] = checked(
        request.user, now.document.pin(pinned), origin(request), template, submission.place_at(place)
    )
    context = {
        "fields": draw(request.user, applied, place, templates.find(request.user, template)),
        "form": SubmitForm(request.user, initial={"place": place}),
    }
    answer |= {
        "text": now.text,
        "pinned": pinned or "",
        "form": render_to_string("jobs/new/form.html", context, request),
    }
    return JsonResponse(answer)
