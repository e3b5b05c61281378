"""The file of a job, in the format that a version of the API answers."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml
from django.http import HttpResponse, HttpResponseBase

from jobs import dialects
from jobs.api.vendors.openpai import errors
from jobs.api.vendors.openpai.job_names import find_job, name_of
from jobs.api.vendors.operations import Call
from jobs.dialects.base import Refused
from jobs.dialects.document import Document
from jobs.models import Job, JobFile
from quotas.access import Verb

V1: Final = "openpai-v1"
V2: Final = "openpai-v2"


def get_v1(call: Call) -> HttpResponseBase:
    """Return a job's file as it was submitted, with placeholders for secrets, as JSON or YAML by `Accept`.

    The file of another format is converted to version 1.
    """
    job = find_job(call, Verb.READ)
    text = _text(job, V2 if job.dialect == V2 else V1)
    wants_yaml = "yaml" in call.request.headers.get("Accept", "")
    if wants_yaml == (job.dialect == V2):
        return _respond(text, is_yaml=wants_yaml)
    value = _load(job, text)
    if wants_yaml:
        return _respond(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), is_yaml=True)
    return _respond(json.dumps(value, ensure_ascii=False), is_yaml=False)


def get_v2(call: Call) -> HttpResponseBase:
    """Return a job's file in version 2; the file of another format is converted."""
    return _respond(_text(find_job(call, Verb.READ), V2), is_yaml=True)


def _text(job: Job, dialect: str) -> str:
    """Return the stored text, or what it is in another dialect.  Raises VendorError."""
    text = JobFile.objects.get(job=job).text
    if job.dialect == dialect:
        return text
    try:
        return dialects.convert(Document(text, job.dialect), dialect).document.text
    except Refused:
        raise errors.no_job_config(name_of(job)) from None


def _load(job: Job, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise errors.no_job_config(name_of(job)) from None


def _respond(text: str, *, is_yaml: bool) -> HttpResponse:
    kind = "text/yaml" if is_yaml else "application/json"
    return HttpResponse(text, content_type=f"{kind}; charset=utf-8")
