"""Jobs for requests that a client repeats, signed anew, because it received no answer.

Nothing that was created is ever answered with an error, and a job whose answer was not made is found again by
its request.  One whose answer was made is not: the same request is then meant anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from django.db import DatabaseError
from django.utils import timezone

from jobs import submission
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.models import Job
from quotas.accounts import access_keys
from quotas.models import User

log = structlog.get_logger(__name__)

_RECENT: Final = 50
"""So many of the person's newest jobs are searched for one that was not answered."""


@dataclass(frozen=True, slots=True)
class RepetitionPolicy:
    """The repetitions of a vendor's clients.

    `prefix` marks the idempotency keys of their requests.  A repetition comes `within` a time; an earlier
    request may still be on its way to its answer until it is `settled_after` a time.
    """

    prefix: str
    within: timedelta
    settled_after: timedelta = timedelta()

    def key_of(self, request_name: str) -> str:
        """Return the idempotency key of a request, by anything that no other request has."""
        return self.prefix + hashlib.sha256(request_name.encode()).hexdigest()


def submit_once(
    user: User,
    document: Document,
    target: submission.JobTarget,
    request_name: str,
    policy: RepetitionPolicy,
) -> Job:
    """Return the job of a request, which is created unless the same request created it without an answer.

    Raises Refused, Forbidden, Conflict (same name, other request).
    """
    digest = submission.request_digest(document, target)
    job = _find_unanswered(user, digest, policy)
    if job is None:
        job = _submit(user, document, target, policy.key_of(request_name))
    _note_answer(job, policy)
    return job


def _submit(user: User, document: Document, target: submission.JobTarget, key: str) -> Job:
    try:
        return submission.submit(user, document, place=target, idempotency_key=key).job
    except (submission.Conflict, submission.Forbidden, Refused):
        raise
    except Exception:
        job = Job.objects.filter(owner=user, idempotency_key=key).first()
        if job is None:
            raise
        log.exception("created_with_failure", job=job.public_id)
        return job


def _find_unanswered(user: User, digest: str, policy: RepetitionPolicy) -> Job | None:
    """Return the person's job of the same request that was created but not answered, if there is one."""
    now = timezone.now()
    recent = Job.objects.filter(owner=user).order_by("-pk")
    rows = recent.values_list("pk", "request_digest", "idempotency_key", "created_at")[:_RECENT]
    for pk, earlier, key, created_at in rows:
        if earlier != digest or not (key or "").startswith(policy.prefix):
            continue
        age = max(now - created_at, timedelta())  # the database's clock may be ahead
        is_repeatable = policy.settled_after <= age <= policy.within
        if is_repeatable and not access_keys.is_recorded(_answer_digest(key)):
            return recent.get(pk=pk)
    return None


def _note_answer(job: Job, policy: RepetitionPolicy) -> None:
    """Record that the job was answered."""
    try:
        access_keys.record_signature(_answer_digest(job.idempotency_key), timezone.now() + policy.within)
    except DatabaseError:
        log.exception("answer_not_recorded", job=job.public_id)


def _answer_digest(key: str | None) -> str:
    return hashlib.sha256(f"answered\0{key}".encode()).hexdigest()
