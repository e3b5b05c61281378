"""Jobs of the list as CSV."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from jobs.models import Job
from jobs.search.job_csv import MOST, csv_of
from jobs.search.job_pages import find_jobs
from jobs.web.http import SignedIn, signed_in
from jobs.web.job_list.page import listing_of


@require_safe
@signed_in
def export(request: SignedIn) -> HttpResponseBase:
    """The newest jobs that the query finds, as CSV."""
    return as_csv(find_jobs(request.user, listing_of(request.GET).query, MOST, is_limited=False))


def as_csv(jobs: Iterable[Job]) -> HttpResponse:
    """Return jobs as a file of CSV."""
    response = HttpResponse(csv_of(jobs), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="jobs.csv"'
    return response
