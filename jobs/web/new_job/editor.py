"""The requests of the editor and the form while somebody types: check, fix, convert, apply.

Nothing is stored, except for a typed password: it goes to the person's secrets, and is never sent back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST

from jobs import dialects, submission
from jobs.dialects import checks
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.formats import FORMATS
from jobs.form.file_form import FormResult, read
from jobs.messages import dialect_label, why_message
from jobs.messages.findings import Finding, fix_from_json
from jobs.submission import templates
from jobs.submission.checks import feasibility
from jobs.submission.checks.findings import conversion, examine, problems_of
from jobs.submission.forms import SubmitForm
from jobs.web.http import SignedIn, signed_in
from jobs.web.job.page import job_file_name
from jobs.web.new_job.drafts import find_origin
from jobs.web.new_job.form.view import apply_posted, build_form

ALL: Final = "all"
"""Instead of one fix: all offered ones, and those that they make possible."""


def _document_view(
    view: Callable[[SignedIn, Document], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Make a view of one that takes a posted job file; an unknown dialect is answered with 400."""

    @require_POST
    @signed_in
    def wrapper(request: SignedIn) -> HttpResponseBase:
        text, dialect = request.POST.get("text", ""), request.POST.get("dialect") or None
        if dialect not in (None, *dialects.NAMES):
            return _problems()
        return view(request, Document(text.replace("\r\n", "\n"), dialect))

    return wrapper


def _problems(found: Sequence[Finding] = ()) -> JsonResponse:
    return JsonResponse({"problems": [each.to_json() for each in found]}, status=400)


@_document_view
def check(request: SignedIn, document: Document) -> HttpResponseBase:
    """`text`, and `dialect` when it is known → `{"dialect", "why", "candidates", "problems", "notes"}`."""
    return JsonResponse(_check(request, document))


def _check(request: SignedIn, document: Document) -> dict[str, Any]:
    """Return the dialect, problems and notes of a job file for the editor."""
    template, place = request.POST.get("template", ""), submission.parse_target(request.POST.get("place", ""))
    found = examine(request.user, document, find_origin(request), template, place)
    candidates = () if document.given else document.candidates
    why = next((each.why for each in candidates if each.name == found.dialect), "")
    ambiguous = any(problem.code == "ambiguous_dialect" for problem in found.problems)
    return {
        "dialect": found.dialect or None,
        "syntax": FORMATS[found.dialect].syntax if found.dialect else None,
        "label": dialect_label(found.dialect) if found.dialect else None,
        "why": why_message(why),
        "candidates": [
            {"name": each.name, "label": dialect_label(each.name), "why": why_message(each.why)}
            for each in (candidates if ambiguous else ())
        ],
        "problems": [each.to_json() for each in found.problems],
        "notes": [each.to_json() for each in found.notes],
    }


@_document_view
def convert(request: SignedIn, document: Document) -> HttpResponseBase:
    """`text`, `to`, and `dialect` when it is known → `{"dialect", "text", "filled", "notes", "problems", …}`.

    `filled` has the secret values that stood in the text, so that its sender may go on writing with them.
    """
    to = request.POST.get("to", "")
    if to not in dialects.NAMES:
        return _problems()
    made = conversion(document, to)
    file = job_file_name(made.name or "job", to)
    more = {"filled": made.filled, "file": file, "syntax": FORMATS[to].syntax}
    return JsonResponse(made.to_json() | more)


@_document_view
def fix(request: SignedIn, document: Document) -> HttpResponseBase:
    """`text` and `fix` (of `check`, or `all`), or an `action` of a problem → the changed `{"text"}`.

    400 with the problems, where the change can't be made.
    """
    try:
        if request.POST.get("fix") == ALL:
            made = checks.apply_all_fixes(checks.check(document)).document
        elif "action" in request.POST:
            action = json.loads(request.POST["action"])
            made = feasibility.apply_action(document, str(action["kind"]), str(action["value"]))
        else:
            made = checks.apply(document, [fix_from_json(json.loads(request.POST.get("fix", "")))])
        return JsonResponse({"text": made.text})
    except Refused as refused:
        return _problems(problems_of(document.text, refused.problems))
    except (AttributeError, ValueError, KeyError, TypeError, feasibility.CannotActError):
        return _problems()


@_document_view
def change(request: SignedIn, document: Document) -> HttpResponseBase:
    """`text` and the form's fields → `{"text", "pinned", "form"}`, and what `job_check` answers."""
    return _form(request, document, apply_posted(request.user, request.POST, document))


@_document_view
def read_form(request: SignedIn, document: Document) -> HttpResponseBase:
    """`text` → the same, with the text as it came and a new form."""
    return _form(request, document, FormResult(read(document)))


def _form(request: SignedIn, document: Document, applied: FormResult) -> HttpResponseBase:
    now = applied.reading
    pinned = document.given if document.given == now.dialect else None
    place = request.POST.get("place", "")
    template = templates.find(request.user, request.POST.get("template", ""))
    context = {
        "fields": build_form(request.user, applied, place, template),
        "form": SubmitForm(request.user, initial={"place": place}),
    }
    answer = {
        "text": now.text,
        "pinned": pinned or "",
        "form": render_to_string("jobs/new/form.html", context, request),
    }
    return JsonResponse(_check(request, now.document.pin(pinned)) | answer)
