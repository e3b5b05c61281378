"""What the editor asks while somebody writes: is this right, and what would mend it.  Nothing is stored."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponseBase, JsonResponse
from django.views.decorators.http import require_POST

from jobs import dialects
from jobs.dialects.base import Fix, Refused
from jobs.views.findings import examine, problems_of
from jobs.views.http import SignedIn, signed_in


@require_POST
@signed_in
def check(request: SignedIn) -> HttpResponseBase:
    """`text`, and `dialect` when it is known → `{"dialect", "problems", "notes"}`."""
    dialect = request.POST.get("dialect") or None
    if dialect not in (None, *dialects.NAMES):
        return JsonResponse({"problems": []}, status=400)
    found = examine(_text(request), dialect)
    return JsonResponse(
        {
            "dialect": found.dialect or None,
            "problems": [each.to_json() for each in found.problems],
            "notes": [each.to_json() for each in found.notes],
        }
    )


@require_POST
@signed_in
def mend(request: SignedIn) -> HttpResponseBase:
    """`text` and `fix` (as `check` gave it) → `{"text"}` with that change made, or 400 with the problems."""
    text = _text(request)
    try:
        fix = _fix(json.loads(request.POST.get("fix", "")))
        name = dialects.name_of(text)
        return JsonResponse({"text": dialects.get(name).apply_fixes(text, [fix])})
    except Refused as refused:
        problems = [each.to_json() for each in problems_of(text, refused.problems)]
        return JsonResponse({"problems": problems}, status=400)
    except (ValueError, KeyError, TypeError):
        return JsonResponse({"problems": []}, status=400)


def _text(request: SignedIn) -> str:
    return request.POST.get("text", "")


def _fix(value: Any) -> Fix:
    return Fix(str(value["pointer"]), value["value"])
