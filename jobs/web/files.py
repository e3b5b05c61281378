"""The job file as it was submitted, to keep; in its own dialect or in any other."""

from __future__ import annotations

import re

from django.http import Http404, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from jobs import dialects
from jobs.dialects.document import Document
from jobs.dialects.formats import FORMATS
from jobs.models import JobFile
from jobs.submission.access import find_job
from jobs.submission.conversion import conversion
from jobs.web.http import SignedIn, signed_in


@require_safe
@signed_in
def job_file(request: SignedIn, public_id: str) -> HttpResponseBase:
    """A download named after the job; secret values are placeholders in it.

    With `as` it is written in that dialect; 422 with the reasons when the file can't be read (any more).
    """
    job = find_job(request.user, public_id)
    document = Document(JobFile.objects.get(job=job).text, job.dialect)
    dialect, text = job.dialect, document.text
    if asked := request.GET.get("as"):
        if asked not in dialects.NAMES:
            raise Http404
        made = conversion(document, asked)
        if made.text is None:
            told = "\n".join(problem.message for problem in made.problems)
            return HttpResponse(told, status=422, content_type="text/plain; charset=utf-8")
        dialect, text = asked, made.text
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{file_name(job.name, dialect)}"'
    response["Cache-Control"] = "private, no-store"
    return response


def file_name(job: str, dialect: str) -> str:
    """What a file of the job called `job` is called in that dialect."""
    return f"{re.sub(r'[^A-Za-z0-9._~-]', '_', job) or 'job'}.{FORMATS[dialect].suffix}"
