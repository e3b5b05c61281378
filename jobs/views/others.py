"""What others run on the clusters that the person may use, to look at."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from jobs.messages import slurm
from jobs.models import OtherJob
from jobs.views.http import SignedIn, page, signed_in

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
        "rows": [(row, "" if row.running else slurm.waiting({"slurm": row.reason})) for row in shown],
        "narrowed": bool(cluster or user),
        "previous_url": first if before else "",
        "next_url": f"{first}&before={shown[-1].pk}" if len(found) > PAGE else "",
    }
    return page(request, "jobs/others.html", context)


def _number(text: str) -> int:
    """A key; 0 for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else 0
