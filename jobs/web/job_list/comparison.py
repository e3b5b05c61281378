"""Comparison of several jobs: what became of each, and the fields in which they differ."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponseBase
from django.views.decorators.http import require_safe

from jobs.dialects.document import Document
from jobs.models import Job, JobFile
from jobs.submission.differences import field_rows
from jobs.submission.lineage import compare_with_job
from jobs.tracking.runs import compare_parameters
from jobs.training_metrics import results
from jobs.web.http import SignedIn, page, signed_in
from quotas.access import Verb, those
from quotas.models import User

MOST: Final = 10


@require_safe
@signed_in
def compare(request: SignedIn) -> HttpResponseBase:
    """Show the jobs of `id` side by side, in that order, without those that the person may not read."""
    ids = list(dict.fromkeys(request.GET.getlist("id")))
    context: dict[str, Any] = {"jobs": _find(request.user, ids[:MOST]), "left": max(0, len(ids) - MOST)}
    context["hidden"] = len(ids[:MOST]) - len(context["jobs"])
    if len(context["jobs"]) > 1:
        context |= _differences(context["jobs"])
        context["results"], context["charts"] = results.compare(context["jobs"])
        context["parameters"] = compare_parameters(context["jobs"])
    return page(request, "jobs/comparison.html", context)


def _find(user: User, ids: list[str]) -> list[Job]:
    rows = Job.objects.visible_to(user).filter(public_id__in=ids)
    found = those(user, Verb.READ, list(rows.select_related("owner", "workspace", "cluster", "quota")))
    return sorted(found, key=lambda job: ids.index(job.public_id))


def _differences(jobs: list[Job]) -> dict[str, Any]:
    """Return `rows` of fields, and of two jobs the difference `lines` of their files."""
    files = JobFile.objects.in_bulk([job.pk for job in jobs])
    found: dict[str, Any] = {"rows": field_rows([files[job.pk].spec for job in jobs])}
    if len(jobs) == 2:
        first, second = jobs
        document = Document(files[second.pk].text, second.dialect)
        found["lines"] = compare_with_job(first, document)["lines"]
    return found
