"""The history of a job: the jobs that it was copied from, and what each copy changed."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponseBase
from django.views.decorators.http import require_POST, require_safe

from jobs.submission import lineage
from jobs.submission.access import find_job
from jobs.web.http import SignedIn, page, signed_in
from jobs.web.new_job.drafts import find_origin, typed_document
from quotas.access import Verb, can

FRAGMENTS: Final = {"job-difference": "jobs/new/difference_answer.html"}


@require_safe
@signed_in
def history(request: SignedIn, public_id: str) -> HttpResponseBase:
    """Show the jobs that this one was copied from, the latest first, and its own copies."""
    job = find_job(request.user, public_id)
    past = lineage.trace(request.user, job)
    found = lineage.list_descendants(request.user, job, request.GET.get("before", ""))
    return page(
        request,
        "jobs/history.html",
        {
            "job": job,
            "steps": past.steps,
            "earlier": past.earlier,
            "hidden": past.is_hidden,
            "descendants": lineage.list_changes(request.user, job, found[: lineage.MOST]),
            "later": found[lineage.MOST - 1].public_id if len(found) > lineage.MOST else "",
        },
    )


# --- while it is edited ----------------------------------------------------------------------------------


@require_POST
@signed_in
def difference(request: SignedIn) -> HttpResponseBase:
    """`text`, `dialect` and `origin` → the difference to the original job; nothing is stored."""
    before = find_origin(request)
    if before is None or not can(request.user, Verb.READ, before):
        return page(request, "jobs/new/difference_page.html", {"origin": None}, fragments=FRAGMENTS)
    context = lineage.compare_with_job(before, typed_document(request))
    return page(request, "jobs/new/difference_page.html", context, fragments=FRAGMENTS)
