"""CreateJob: a job for each signature, whatever happens to its answer.

The client repeats a request after an outage, with the same signature within a second, else with a new one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from jobs import submission
from jobs.api.vendors.aihc import names
from jobs.api.vendors.api import VendorError
from jobs.api.vendors.operations import Call, InvalidParameters, WrongValue
from jobs.api.vendors.repeated_requests import RepetitionPolicy, submit_once
from jobs.dialects.document import Document
from jobs.models import Job

DIALECT: Final = "aihc"
DEFAULT_QUEUE: Final = "default"
"""The queue that every pool has at AIHC, and that its command line sends where none is named."""

_REPETITIONS: Final = RepetitionPolicy(prefix="bce-auth-v1:", within=timedelta(minutes=5))
"""The client has given up by then: three repetitions, each after 50 seconds without an answer."""


def create(call: Call) -> Job:
    """Return the job of a request, which is created unless the same request created it before.

    Raises Refused, Forbidden, InvalidParameters, VendorError (same signature, other body).
    """
    document = Document(call.text, DIALECT)
    target = find_target(call, document)
    signature = call.request.headers.get("Authorization", "")
    try:
        return submit_once(call.person, document, target, signature, _REPETITIONS)
    except submission.Conflict as error:
        # Signatures don't cover bodies: two of one length within a second have the same.  The client repeats
        # a request after 503, signed anew.
        message = "The signature was used for another request; sign the request again."
        raise VendorError(503, "RequestExpired", message, {"Retry-After": "1"}) from error


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
