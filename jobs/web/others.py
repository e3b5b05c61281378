"""What others run on the clusters that the person may use, to look at."""

from __future__ import annotations

from typing import Final

from django.http import Http404, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_safe

from jobs.logs import otherlogs, tail
from jobs.messages import slurm
from jobs.models import OtherJob
from jobs.web.http import SignedIn, page, signed_in

PAGE: Final = 50


@require_safe
@signed_in
def others(request: SignedIn) -> HttpResponseBase:
    """The newest first, those of one cluster or of one person where that is asked for."""
    cluster, user = request.GET.get("cluster", "")[:63], request.GET.get("user", "")[:64]
    before = _number(request.GET.get("before", ""))
    rows = OtherJob.objects.visible_to(request.user).select_related("cluster").order_by("-pk")
    rows = rows.filter(cluster__slug=cluster) if cluster else rows
    rows = rows.filter(user=user) if user else rows
    found = list((rows.filter(pk__lt=before) if before else rows)[: PAGE + 1])
    shown = found[:PAGE]
    query = request.GET.copy()
    query.pop("before", None)
    first = f"{reverse('jobs_others')}?{query.urlencode()}"
    context = {
        "rows": [_told(row) for row in shown],
        "narrowed": bool(cluster or user),
        "previous_url": first if before else "",
        "next_url": f"{first}&before={shown[-1].pk}" if len(found) > PAGE else "",
    }
    return page(request, "jobs/others.html", context)


def _told(row: OtherJob) -> tuple[OtherJob, str, bool]:
    """A job, why it waits, and whether there may be a log to look at."""
    return row, "" if row.running else slurm.waiting({"slurm": row.reason}), otherlogs.has_log(row)


@require_safe
@signed_in
def log(request: SignedIn, pk: int) -> HttpResponseBase:
    """The end of what a job writes, or what stands before or after a place in it."""
    job = get_object_or_404(OtherJob.objects.visible_to(request.user).select_related("cluster"), pk=pk)
    if not otherlogs.has_log(job):
        raise Http404
    before, after = (_number(request.GET.get(name, "")) or None for name in ("before", "after"))
    found = otherlogs.read(job, before=before, after=after)
    context = {"job": job, "found": found, "log_url": reverse("jobs_others_log", args=[pk])}
    if found is not None:
        lines = found.data.decode("utf-8", "replace").removesuffix("\n").split("\n")
        context["text"] = "\n".join(tail.plain(line) for line in lines)
    return page(request, "jobs/others/log.html", context)


def _number(text: str) -> int:
    """A key; 0 for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else 0
