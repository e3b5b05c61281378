"""What a job ran that its file alone does not say: the commit that its branch had by then."""

from __future__ import annotations

from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.models import Job, Task


def commit_of(job: Job) -> str:
    """The commit that git fetched for the job, the last time that it did; "" where it fetched none."""
    fetched = Task.objects.filter(attempt__job=job).exclude(commit="")
    rows = fetched.order_by("-attempt__number", "-run", "ordinal").values_list("commit", flat=True)
    return rows.first() or ""


def as_it_ran(job: Job, document: Document) -> Document:
    """The job's file with that commit, where it names none itself."""
    commit = commit_of(job)
    if not commit:
        return document
    try:
        parsed = document.parsed
    except Refused:
        return document
    code = parsed.spec.code
    if code is None or code.commit:
        return document
    spec = parsed.spec.model_copy(update={"code": code.model_copy(update={"commit": commit})})
    return document.render(spec).document
