"""Submission of job files of both versions, as JSON, as a form or as YAML."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import quote

from django.db import transaction
from django.http import HttpResponseBase, JsonResponse

from jobs import submission
from jobs.api.vendors.api import VendorError, sentences_of
from jobs.api.vendors.openpai import bodies, errors, sentences
from jobs.api.vendors.openpai.configs import V1, V2
from jobs.api.vendors.openpai.job_details import describe
from jobs.api.vendors.openpai.job_names import requested_name
from jobs.api.vendors.openpai.states import Version
from jobs.api.vendors.openpai.virtual_clusters import find_target
from jobs.api.vendors.operations import Call, JsonObject
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.models import Job
from quotas.models import User

_OBSOLETE: Final = (
    "killAllOnCompletedTaskNumber has been obsoleted, please use minFailedTaskCount and "
    "minSucceededTaskCount instead."
)


def submit_v1(call: Call) -> HttpResponseBase:
    """Submit a job file of version 1 or 2; 201 with the job."""
    owner = call.values["username"]
    if owner and owner != call.person.get_username():
        raise errors.forbidden(call.person, f"submit job for user {owner}")
    document = _read_document(call)
    job = _submit(call, document, requested_name(call).partition("~")[2] if "job" in call.values else None)
    path = f"/rest-server/api/v1/user/{quote(call.person.get_username())}/jobs/{quote(job.name)}"
    headers = {"Location": call.request.build_absolute_uri(path)}
    if _has_obsolete_key(document):
        headers["X-Warning"] = _OBSOLETE
    return JsonResponse(describe(call, job, Version.V1), status=201, headers=headers)


def _has_obsolete_key(document: Document) -> bool:
    return any(note.code == "obsolete_key" for note in document.parsed.notes)


def submit_v2(call: Call) -> JsonObject:
    """Submit a job file of version 2."""
    job = _submit(call, Document(call.text, V2), None)
    message = f"Update job {job.name} for user {call.person.get_username()} successfully."
    return {"status": 202, "message": message}


def _read_document(call: Call) -> Document:
    """Return the job file of a request.  Raises InvalidParameters."""
    if bodies.is_form(call.request):
        value = bodies.restore_numbers(bodies.parse_form(call.text))
        return Document(json.dumps(value, ensure_ascii=False, indent=2), V1)
    if bodies.is_yaml(call.request):
        return Document(call.text, V2)
    best = next((each.name for each in Document(call.text).candidates if each.name in {V1, V2}), V1)
    return Document(call.text, best)


def _submit(call: Call, document: Document, name: str | None) -> Job:
    """Submit a job file whose name has to be `name`, where the address has one.  Raises VendorError."""
    user = call.person
    try:
        spec = document.parsed.spec
        if name is not None and spec.name != name:
            raise errors.invalid_parameters(f'"jobName" must be "{name}", as in the address.')
        target = find_target(user, spec.quota)
        with transaction.atomic():
            _check_name(user, spec.name, document.given == V2)
            return submission.submit(user, document, place=target).job
    except Refused as refused:
        raise describe_refusal(user, document, refused) from refused


def _check_name(user: User, name: str, is_v2: bool) -> None:
    """Refuse a name that a job of the person has, also where both come at once."""
    # Only this lock lets the foreign keys of other rows to the person be checked meanwhile.
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if not Job.objects.filter(owner=user, name=name, deleted_at=None).exists():
        return
    if is_v2:
        raise errors.conflicting_job(f"Job {user.get_username()}~{name} already exists.")
    raise errors.conflicting_job(f"Job name {name} already exists")


def describe_refusal(user: User, document: Document, refused: Refused) -> VendorError:
    """Return OpenPAI's error of a refused job file: its own sentence where it has one, else ours."""
    first = refused.problems[0]
    if first.code == "may_not_submit":
        return errors.forbidden_in(user, str(first.params.get("name")))
    if document.given == V1:
        message = sentences.joi_sentence(first) or sentences_of(refused, document.text)[0]
        return errors.invalid_parameters(message)
    message = (
        sentences.protocol_sentence(first)
        or sentences.ajv_errors(refused.problems)
        or " ".join(sentences_of(refused, document.text))
    )
    return errors.invalid_protocol(message)
