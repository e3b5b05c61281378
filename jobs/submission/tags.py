"""Tags of jobs: put on and taken off by whoever controls the job."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
LONGEST_DESCRIPTION: Final = 2000


class TooManyTags(Exception):
    """The job has as many tags as it may."""


def store_tags(job: Job, given: Mapping[str, str]) -> None:
    """Store the tags of a job file, NAME or NAME=VALUE; too long ones are cut."""
    names = {f"{name}={value}" if value else name for name, value in given.items()}
    JobTag.objects.bulk_create(JobTag(job=job, name=name[:LONGEST]) for name in sorted(names)[:MOST])


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


def relabel(user: User, job: Job, description: str, names: Collection[str]) -> None:
    """Set a job's description and its tags, whatever they were.  Raises Forbidden, TooManyTags."""
    require(user, Verb.CONTROL, job)
    if len(names) > MOST:
        raise TooManyTags
    with transaction.atomic():
        before = set(JobTag.objects.filter(job=job).values_list("name", flat=True))
        JobTag.objects.filter(job=job, name__in=before - set(names)).delete()
        JobTag.objects.bulk_create(JobTag(job=job, name=name) for name in sorted(set(names) - before))
        Job.objects.filter(pk=job.pk).update(description=description)
        changes = {
            "tags": (", ".join(sorted(before)), ", ".join(sorted(names))),
            "description": (job.description, description),
        }
        if changed := {name: pair for name, pair in changes.items() if pair[0] != pair[1]}:
            audit.log(Action.UPDATE, job, changes=changed, actor=user, name=job.public_id)


def tags_of(job: Job) -> list[str]:
    """Return a job's tags, in the order in which they were put on."""
    return list(JobTag.objects.filter(job=job).values_list("name", flat=True))
