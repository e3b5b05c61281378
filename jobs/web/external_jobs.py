"""Read-only pages of external jobs: those that were not submitted here."""

from __future__ import annotations

from typing import Final

from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_safe

from jobs.logs import external_logs, tail
from jobs.messages.backend_texts import pending_message
from jobs.models import ExternalJob
from jobs.web.http import SignedIn, number, page, signed_in, slice_before

PAGE: Final = 50


@require_safe
@signed_in
def external_jobs(request: SignedIn) -> HttpResponseBase:
    """Show external jobs, the newest first, of one cluster or of one UNIX user where the query says so."""
    cluster, user = request.GET.get("cluster", "")[:63], request.GET.get("user", "")[:64]
    rows = ExternalJob.objects.visible_to(request.user).select_related("cluster")
    rows = rows.filter(cluster__slug=cluster) if cluster else rows
    rows = rows.filter(user=user) if user else rows
    before = request.GET.get("before", "")
    shown, following = slice_before(rows, before, PAGE)
    query = request.GET.copy()
    query.pop("before", None)
    first = f"{reverse('jobs_others')}?{query.urlencode()}"
    context = {
        "rows": [_job_row(row) for row in shown],
        "narrowed": bool(cluster or user),
        "previous_url": first if number(before) else "",
        "next_url": f"{first}&before={following}" if following else "",
    }
    return page(request, "jobs/others.html", context)


def _job_row(row: ExternalJob) -> tuple[ExternalJob, str, bool]:
    """Return a job, the reason why it waits, and whether it may have a log."""
    backend = row.cluster.backend
    why = "" if row.running else pending_message(backend, {backend: row.reason})
    return row, why, external_logs.has_log(row)


@require_safe
@signed_in
def log(request: SignedIn, pk: int) -> HttpResponseBase:
    """Show the end of a job's log, or the part before or after a position."""
    job = get_object_or_404(ExternalJob.objects.visible_to(request.user).select_related("cluster"), pk=pk)
    if not external_logs.has_log(job):
        raise Http404
    before, after = request.GET.get("before"), request.GET.get("after")
    found = external_logs.read(job, before=number(before) or None, after=number(after) or None)
    context = {"job": job, "found": found, "log_url": reverse("jobs_others_log", args=[pk])}
    if found is not None:
        lines = found.data.decode("utf-8", "replace").removesuffix("\n").split("\n")
        context["text"] = "\n".join(tail.plain(line) for line in lines)
    return page(request, "jobs/others/log.html", context)
