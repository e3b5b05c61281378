"""What the editor asks while somebody writes: what is this, is it right, what would mend it, and how it
looks in another dialect.  Nothing is stored.
"""

from __future__ import annotations

import json
from typing import Any, Final

from django.http import HttpResponseBase, JsonResponse
from django.views.decorators.http import require_POST

from jobs import dialects, submission
from jobs.dialects import checking
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.dialects.formats import FORMATS
from jobs.messages import dialect_label, why_message
from jobs.messages.findings import fix_from_json
from jobs.models import Job
from jobs.submission import feasibility
from jobs.submission.conversion import conversion
from jobs.submission.findings import examine, problems_of
from jobs.web.drafts import origin
from jobs.web.files import file_name
from jobs.web.http import SignedIn, signed_in
from quotas.models import User

ALL: Final = "all"
"""Instead of one fix: every one that is offered, and what they uncover."""


@require_POST
@signed_in
def check(request: SignedIn) -> HttpResponseBase:
    """`text`, and `dialect` when it is known → `{"dialect", "why", "candidates", "problems", "notes"}`."""
    document = posted_document(request)
    if document is None:
        return JsonResponse({"problems": []}, status=400)
    template, place = request.POST.get("template", ""), submission.place_at(request.POST.get("place", ""))
    return JsonResponse(checked(request.user, document, origin(request), template, place))


def checked(
    user: User,
    document: Document,
    origin: Job | None,
    template: str = "",
    place: submission.Place = submission.ANYWHERE,
) -> dict[str, Any]:
    """What there is to say to the editor about a job file, of a job that would go to `place`."""
    found = examine(user, document, origin, template, place)
    candidates = () if document.given else document.candidates
    why = next((each.why for each in candidates if each.name == found.dialect), "")
    ambiguous = any(problem.code == "ambiguous_dialect" for problem in found.problems)
    return {
        "dialect": found.dialect or None,
        "syntax": FORMATS[found.dialect].syntax if found.dialect else None,
        "label": dialect_label(found.dialect) if found.dialect else None,
        "why": why_message(why),
        "candidates": [_candidate(each) for each in candidates] if ambiguous else [],
        "problems": [each.to_json() for each in found.problems],
        "notes": [each.to_json() for each in found.notes],
    }


def _candidate(found: dialects.Detected) -> dict[str, str]:
    return {"name": found.name, "label": dialect_label(found.name), "why": why_message(found.why)}


@require_POST
@signed_in
def convert(request: SignedIn) -> HttpResponseBase:
    """`text`, `to`, and `dialect` when it is known → `{"dialect", "text", "filled", "notes", "problems", …}`.

    `filled` has the secret values that stood in the text, which whoever sent it may go on writing with.
    """
    to, document = request.POST.get("to", ""), posted_document(request)
    if to not in dialects.NAMES or document is None:
        return JsonResponse({"problems": []}, status=400)
    made = conversion(document, to)
    name = made.name or "job"
    more = {"filled": made.filled, "file": file_name(name, to), "syntax": FORMATS[to].syntax}
    return JsonResponse(made.to_json() | more)


@require_POST
@signed_in
def mend(request: SignedIn) -> HttpResponseBase:
    """`text` and `fix` (as `check` gave it, or `all`), or an `action` of a problem → `{"text"}` with it made,
    or 400 with the problems.
    """
    document = posted_document(request)
    if document is None:
        return JsonResponse({"problems": []}, status=400)
    try:
        if request.POST.get("fix") == ALL:
            return JsonResponse({"text": checking.fixed(checking.check(document)).document.text})
        if "action" in request.POST:
            action = json.loads(request.POST["action"])
            made = feasibility.apply_action(document, str(action["kind"]), str(action["value"]))
            return JsonResponse({"text": made.text})
        fix = fix_from_json(json.loads(request.POST.get("fix", "")))
        return JsonResponse({"text": checking.apply(document, [fix]).text})
    except Refused as refused:
        problems = [each.to_json() for each in problems_of(document.text, refused.problems)]
        return JsonResponse({"problems": problems}, status=400)
    except (AttributeError, ValueError, KeyError, TypeError, feasibility.CannotActError):
        return JsonResponse({"problems": []}, status=400)


def posted_document(request: SignedIn) -> Document | None:
    """Return the job file that `text` and `dialect` are; None for a dialect that there is not."""
    dialect = request.POST.get("dialect") or None
    return Document(request.POST.get("text", ""), dialect) if dialect in (None, *dialects.NAMES) else None
