"""One more hour: the longest running time of a job that its owner works in, moved while it runs.

The wish is a number of seconds on the attempt; a worker tells the engine, and takes the wish back where the
engine can't do it.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.db.models import F

from jobs.lifecycle import transitions
from jobs.live import queue
from jobs.models import Attempt, Event, Job, JobFile
from jobs.states import State
from jobs.submission import templates
from quotas import ledger
from quotas.admission import snapshot
from quotas.models import User

HOUR_S: Final = 3600
MOST_S: Final = 168 * HOUR_S
"""In all, where the template does not say."""


class NotExtended(Exception):
    """Only what runs from a template to work in, within its bounds and its quota's, is given more time."""


def left_s(user: User, job: Job) -> int:
    """How many seconds its owner may still add; 0 for whoever may add none."""
    if job.owner_id != user.pk or State(job.state) is not State.RUNNING:
        return 0
    limit = JobFile.objects.get(job=job).spec.time_limit_s
    attempt = Attempt.objects.filter(job=job, number=job.attempt_number, end_kind="").first()
    if limit is None or attempt is None:
        return 0
    return max(0, _most_s(job) - limit - attempt.extended_s)


def limit_s(job: Job, declared: int | None) -> int | None:
    """The longest running time of its attempt, with what was added."""
    if declared is None:
        return None
    added = Attempt.objects.filter(job=job, number=job.attempt_number).values_list("extended_s", flat=True)
    return declared + (added.first() or 0)


def _most_s(job: Job) -> int:
    """The longest that its template allows; 0 where it is none to work in."""
    chosen = templates.source_of(job)
    if chosen is None or not chosen.template.interactive:
        return 0
    asked = (each for each in chosen.template.parameters if "time_limit_s" in each.fills)
    return next((each.most * each.times for each in asked), MOST_S)


def extend(user: User, job: Job, seconds: int = HOUR_S) -> None:
    """Let the owner's running job go on for so much longer.  Raises NotExtended."""
    with transaction.atomic():
        now = transitions.locked(job.pk)
        if left_s(user, now) < seconds or (now.gpus and snapshot.hours_are_gone(now.quota)):
            raise NotExtended
        mine = Attempt.objects.filter(job=now, number=now.attempt_number, end_kind="", ended_at=None)
        if not mine.update(extended_s=F("extended_s") + seconds):
            raise NotExtended
        ledger.declare_more(transitions.key_of(now.public_id, now.attempt_number), seconds)
        transitions.record(now, Event.Kind.EXTENDED, params={"seconds": seconds}, actor=user)
        transitions.tell(now)
        queue.kick_on_commit("observe", now.cluster_id)
