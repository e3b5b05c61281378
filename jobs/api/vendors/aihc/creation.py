"""CreateJob: a job for each signature, whatever happens to its answer.

The client repeats a request after an outage, with the same signature within a second, else with a new one.
Nothing that was created is therefore ever answered with an error, and a job whose answer was not made is
found again by its request.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Final

import structlog
from django.db import DatabaseError
from django.utils import timezone

from jobs import submission
from jobs.api.vendors.aihc import names
from jobs.api.vendors.api import VendorError
from jobs.api.vendors.operations import Call, InvalidParameters, WrongValue
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.models import Job
from quotas.accounts import access_keys

log = structlog.get_logger(__name__)

DIALECT: Final = "aihc"
DEFAULT_QUEUE: Final = "default"
"""The queue that every pool has at AIHC, and that its command line sends where none is named."""

_PREFIX: Final = "bce-auth-v1:"
_REPEATED_WITHIN: Final = timedelta(minutes=5)
"""The client has given up by then: three repetitions, each after 50 seconds without an answer."""

_RECENT: Final = 50
"""So many of the person's newest jobs are searched for one that was not answered."""


def create(call: Call) -> Job:
    """Return the job of a request, which is created unless the same request created it before.

    Raises Refused, Forbidden, InvalidParameters, VendorError (same signature, other body).
    """
    document = Document(call.text, DIALECT)
    target = find_target(call, document)
    key = _PREFIX + hashlib.sha256(call.request.headers.get("Authorization", "").encode()).hexdigest()
    digest = submission.request_digest(document, target)
    job = _find_unanswered(call, digest) or _submit(call, document, target, key)
    _note_answer(job)
    return job


def find_target(call: Call, document: Document) -> submission.JobTarget:
    """Return the target: the pool is a cluster, the queue a quota or the address of one.

    The queue in the query comes before the one in the body.  Raises Refused, InvalidParameters.
    """
    pool = call.values["resourcePoolId"]
    cluster = "" if pool == names.MANAGED_POOL else pool
    queue = call.values.get("queueID") or document.parsed.spec.quota or ""
    if "/" in queue:
        target = submission.parse_target(queue)
        if target == submission.ANYWHERE or cluster not in {"", target.cluster}:
            raise InvalidParameters([WrongValue("queueID", f"queue of the resource pool {pool}")])
        return target
    if queue == DEFAULT_QUEUE and not _has_queue(call, cluster, queue):
        queue = ""
    return submission.JobTarget(cluster=cluster, quota=queue)


def _has_queue(call: Call, cluster: str, slug: str) -> bool:
    quotas = submission.quotas_open_to(call.person).filter(slug=slug)
    return (quotas.filter(cluster__slug=cluster) if cluster else quotas).exists()


def _submit(call: Call, document: Document, target: submission.JobTarget, key: str) -> Job:
    try:
        return submission.submit(call.person, document, place=target, idempotency_key=key).job
    except submission.Conflict as error:
        # Signatures don't cover bodies: two of one length within a second have the same.  The client repeats
        # a request after 503, signed anew.
        message = "The signature was used for another request; sign the request again."
        raise VendorError(503, "RequestExpired", message, {"Retry-After": "1"}) from error
    except (Refused, submission.Forbidden):
        raise
    except Exception:
        job = Job.objects.filter(owner=call.person, idempotency_key=key).first()
        if job is None:
            raise
        log.exception("created_with_failure", job=job.public_id)
        return job


def _find_unanswered(call: Call, digest: str) -> Job | None:
    """Return the person's job of the same request that was created but not answered, if there is one."""
    since = timezone.now() - _REPEATED_WITHIN
    recent = Job.objects.filter(owner=call.person).order_by("-pk")
    rows = recent.values_list("pk", "request_digest", "idempotency_key", "created_at")[:_RECENT]
    for pk, earlier, key, created_at in rows:
        if earlier != digest or not (key or "").startswith(_PREFIX) or created_at < since:
            continue
        if not access_keys.is_recorded(_answer_digest(key)):
            return recent.get(pk=pk)
    return None


def _note_answer(job: Job) -> None:
    """Record that the job was answered: the same request with a new signature is then meant anew."""
    try:
        expires_at = timezone.now() + _REPEATED_WITHIN
        access_keys.record_signature(_answer_digest(job.idempotency_key), expires_at)
    except DatabaseError:
        log.exception("answer_not_recorded", job=job.public_id)


def _answer_digest(key: str | None) -> str:
    return hashlib.sha256(f"answered\0{key}".encode()).hexdigest()
