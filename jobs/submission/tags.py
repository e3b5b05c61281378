"""Tags of jobs: put on and taken off by whoever controls the job."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from jobs.models import Job, JobTag
from jobs.submission.access import require
from quotas import audit
from quotas.access import Verb
from quotas.models import Action, User

MOST: Final = 100
"""Tags of one job."""

LONGEST: Final = 255


class TooManyTags(Exception):
    """The job has as many tags as it may."""


def add_tag(user: User, job: Job, name: str) -> None:
    """Put a tag on a job; one that it has already stays.  Raises Forbidden, TooManyTags."""
    require(user, Verb.CONTROL, job)
    with transaction.atomic():
        if JobTag.objects.filter(job=job).exclude(name=name).count() >= MOST:
            raise TooManyTags
        _tag, is_new = JobTag.objects.get_or_create(job=job, name=name)
        if is_new:
            audit.log(Action.UPDATE, job, changes={"tag": ("", name)}, actor=user, name=job.public_id)


def remove_tag(user: User, job: Job, name: str) -> bool:
    """Take a tag off a job; return whether it had that.  Raises Forbidden."""
    require(user, Verb.CONTROL, job)
    with transaction.atomic():
        found = bool(JobTag.objects.filter(job=job, name=name).delete()[0])
        if found:
            audit.log(Action.UPDATE, job, changes={"tag": (name, "")}, actor=user, name=job.public_id)
    return found
