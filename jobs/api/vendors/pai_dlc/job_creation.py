"""CreateJob: a body in the format `dlc`, submitted as from the pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from jobs import submission
from jobs.api.vendors.api import ErrorKind, VendorError, sentences_of
from jobs.api.vendors.operations import Call, InvalidParameters, JsonObject, Operation, WrongValue
from jobs.api.vendors.pai_dlc.identifiers import job_id
from jobs.api.vendors.pai_dlc.refusals import refusal
from jobs.api.vendors.repeated_requests import RepetitionPolicy, submit_once
from jobs.dialects.base import Refused
from jobs.dialects.dlc import DIALECT
from jobs.dialects.dlc.limits import MOST_BYTES
from jobs.dialects.document import Document
from jobs.models import Job
from jobs.spec import JobSpec

LONGEST_KEY: Final = 255

_REPETITIONS: Final = RepetitionPolicy(
    prefix="acs:", within=timedelta(minutes=5), settled_after=timedelta(seconds=5)
)
"""The SDK waits ten seconds for an answer.  What comes sooner is another job, submitted at the same time."""


def create_job(call: Call) -> JsonObject:
    """Submit the job that the body describes, to its WorkspaceId and ResourceId."""
    size = len(call.request.body)
    if size > MOST_BYTES.value:
        message = f"The parameters have {size} bytes; at most {MOST_BYTES.value} are allowed."
        raise refusal(ErrorKind.INVALID, message)
    document = Document(call.text, DIALECT.name)
    try:
        target = _target_of(document.parsed.spec)
        job = _submit(call, document, target)
    except Refused as refused:
        raise _describe(refused, document) from None
    return {"JobId": job_id(job)}


def _submit(call: Call, document: Document, target: submission.JobTarget) -> Job:
    """Return the job of a request: by the key that the client gave it, else by what it says."""
    if key := _idempotency_key(call):
        return submission.submit(call.person, document, place=target, idempotency_key=key).job
    return submit_once(call.person, document, target, call.request_id, _REPETITIONS)


def _describe(refused: Refused, document: Document) -> VendorError:
    """Return the vendor's error; a field of the job is named by its place in the request."""
    problems = refused.problems
    if not document.problems:
        places = document.places
        problems = tuple(replace(each, pointer=places.pointer_of(each.pointer)) for each in problems)
    return refusal(ErrorKind.INVALID, " ".join(sentences_of(Refused(problems), document.text)))


def _target_of(spec: JobSpec) -> submission.JobTarget:
    """Return the target that WorkspaceId and ResourceId name.

    A ResourceId is a quota's short name, or WORKSPACE/CLUSTER/QUOTA where several have the same.
    """
    target = submission.parse_target(spec.quota)
    if target is submission.ANYWHERE:
        return submission.JobTarget(workspace=spec.workspace, quota=spec.quota)
    if spec.workspace and spec.workspace != target.workspace:
        raise InvalidParameters([WrongValue("ResourceId", "resource quota of that workspace")])
    return target


def _idempotency_key(call: Call) -> str | None:
    """Return the key that a client may send as a header of its own, as with the native API."""
    key = call.request.headers.get("Idempotency-Key", "")
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise InvalidParameters(
            [WrongValue("Idempotency-Key", f"at most {LONGEST_KEY} printable characters")]
        )
    return key or None


CREATE_JOB: Final = Operation(
    "CreateJob", "POST", "api/v1/jobs", create_job, scope="submit", format=DIALECT.name
)
"""The operation."""
