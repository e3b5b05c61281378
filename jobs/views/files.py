"""The job file as it was submitted, to keep."""

from __future__ import annotations

import re

from django.http import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from jobs.models import JobFile
from jobs.views.access import find_job
from jobs.views.http import SignedIn, signed_in

SUFFIXES = {"openpai-v1": "json"}


@require_safe
@signed_in
def job_file(request: SignedIn, public_id: str) -> HttpResponseBase:
    """A download named after the job; secret values are placeholders in it."""
    job = find_job(request.user, public_id)
    name = re.sub(r"[^A-Za-z0-9._~-]", "_", job.name) or job.public_id
    response = HttpResponse(JobFile.objects.get(job=job).text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.{SUFFIXES.get(job.dialect, "txt")}"'
    response["Cache-Control"] = "private, no-store"
    return response
