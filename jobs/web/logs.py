"""A replica's log as bytes."""

from __future__ import annotations

from django.http import Http404, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from jobs.live import raw
from jobs.submission.access import find_job
from jobs.web.http import SignedIn, signed_in


@require_safe
@signed_in
def logs(request: SignedIn, public_id: str) -> HttpResponseBase:
    """A slice by offset, the whole log (`download=1`), or the lines that contain `q`: see `jobs.live.raw`."""
    job = find_job(request.user, public_id)
    try:
        return raw.respond(job, request.GET.dict())
    except raw.NoSuchLog:
        raise Http404 from None
    except raw.BadNumber as error:
        return HttpResponse(f"{error} is no such number", status=400, content_type="text/plain")
