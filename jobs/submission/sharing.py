"""Who in the workspace sees a job's file, log and files."""

from __future__ import annotations

from django.db import transaction

from jobs.lifecycle import transitions
from jobs.models import Event, Job, Visibility
from jobs.submission.rights import require
from quotas.access import Verb
from quotas.models import User


def share(user: User, job: Job, visibility: Visibility) -> None:
    """Open the job to its workspace, or close it.  Raises Forbidden."""
    require(user, Verb.CONTROL, job)
    with transaction.atomic():
        Job.objects.filter(pk=job.pk).update(visibility=visibility)
        transitions.record(
            job,
            Event.Kind.SHARED,
            params={"visibility": visibility},
            actor=user,
            changes={"visibility": (job.visibility, visibility)},
        )
        transitions.tell(job)
