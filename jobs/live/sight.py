"""Who somebody still is, and what they may still hear of; asked again and again while a stream is open."""

from __future__ import annotations

from jobs.models import Job
from quotas.access import Verb, can, workspaces_of
from quotas.models import User


def everything(user: User | None) -> frozenset[int] | None:
    """The workspaces whose changes the person may hear of; None for nobody."""
    if user is None:
        return None
    return frozenset(workspaces_of(user).values_list("pk", flat=True))


def one_job(user: User | None, job_pk: int, verb: Verb) -> frozenset[int] | None:
    """The workspace of the job while the person may do `verb` with it; None as soon as they may not."""
    job = Job.objects.visible_to(user).filter(pk=job_pk).first() if user is not None else None
    if user is None or job is None or not can(user, verb, job):
        return None
    return frozenset({job.workspace_id})
