"""Stack dumps: requested by people and by fault tolerance as rows, which a worker answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.db import transaction

from jobs.live import triggers
from jobs.models import Attempt, Job, StackDump
from jobs.states import State
from jobs.submission.access import require
from quotas import audit
from quotas.access import Verb
from quotas.models import Action, User

MOST_SHOWN: Final = 20


class NothingRuns(Exception):
    """No replica of the job runs now."""


def ask(user: User, job: Job) -> StackDump:
    """Request the stacks of the job's running replicas; an open request is answered for both.

    Raises Forbidden or NothingRuns.
    """
    require(user, Verb.ENTER, job)
    attempt = Attempt.objects.filter(job=job, number=job.attempt_number, live=True).first()
    if attempt is None or job.state != State.RUNNING:
        raise NothingRuns
    with transaction.atomic():
        audit.log(Action.ENTER, job, details={"way": "stacks"}, name=job.public_id)
        return request(attempt, job, user)


def request(attempt: Attempt, job: Job, user: User | None = None) -> StackDump:
    """Return the open request of the run, or a new one."""
    with transaction.atomic():
        rows = StackDump.objects.filter(attempt=attempt, run=job.run_number)
        row = rows.filter(ended_at=None, asked_by=user).first() or StackDump.objects.create(
            attempt=attempt, run=job.run_number, asked_by=user
        )
        triggers.trigger_on_commit("dump_stacks", job.cluster_id)
    return row


def list_dumps(attempt: Attempt) -> Sequence[StackDump]:
    """Return the newest dumps of an attempt, without their reports."""
    rows = StackDump.objects.filter(attempt=attempt).select_related("asked_by").defer("report")
    return list(rows.order_by("-pk")[:MOST_SHOWN])


def find(job: Job, pk: int) -> StackDump | None:
    """Return a dump of the job."""
    return StackDump.objects.filter(attempt__job=job, pk=pk).select_related("attempt", "asked_by").first()
