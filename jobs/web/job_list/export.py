"""Jobs of the list as CSV."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.http import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from jobs.models import Job
from jobs.search.job_pages import find_jobs
from jobs.web.http import SignedIn, signed_in
from jobs.web.job_list.page import listing_of
from quotas import sheets

MOST: Final = 5000

HEADINGS: Final = (
    *("id", "name", "state", "reason", "owner", "workspace", "cluster", "quota"),
    *("gpu_type", "gpus", "replicas", "priority", "submitted", "started", "ended"),
)


@require_safe
@signed_in
def export(request: SignedIn) -> HttpResponseBase:
    """The newest jobs that the query finds, as CSV."""
    return as_csv(find_jobs(request.user, listing_of(request.GET).query, MOST))


def as_csv(jobs: Iterable[Job]) -> HttpResponse:
    """Return jobs as a file of CSV."""
    content = sheets.lines([HEADINGS, *map(_row, jobs)])
    response = HttpResponse(content, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="jobs.csv"'
    return response


def _row(job: Job) -> tuple[object, ...]:
    times = (each.isoformat() if each else "" for each in (job.created_at, job.started_at, job.ended_at))
    return (
        *(job.public_id, job.name, job.state, job.reason_code, job.owner.get_username()),
        *(job.workspace.slug, job.cluster.slug, job.quota.slug),
        *(job.gpu_type, job.gpus, job.replicas_total, job.priority),
        *times,
    )
