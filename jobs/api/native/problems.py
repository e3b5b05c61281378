"""Errors of every kind as problem details (RFC 9457)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from django.core.exceptions import PermissionDenied
from django.http import Http404, JsonResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from jobs import submission
from jobs.access.folders import client as folders
from jobs.access.folders import file_responses
from jobs.access.sessions import EntryRefused
from jobs.assets.uploads.store import NotTaken
from jobs.assets.uploads.uploaded_trees import ContentMissing
from jobs.dialects.base import Problem
from jobs.lifecycle.transitions import Overtaken
from jobs.live import log_responses
from jobs.live.limits import RETRY_AFTER_S, LimitReached
from jobs.messages.findings import Finding
from jobs.messages.ssh import entry_message
from jobs.messages.uploads import upload_message
from jobs.models import outage
from jobs.submission import stack_dumps
from jobs.submission.checks.findings import problems_of
from jobs.submission.job_control import FilesRemoved, NotExtended
from jobs.trees import BadTree

log = structlog.get_logger(__name__)

CONTENT_TYPE: Final = "application/problem+json"
_UPLOAD_STATUS: Final = {"hash": 422, "busy": 409, "offset": 409, "range": 400, "disk_low": 507}
REALM: Final = 'Bearer realm="job-console"'


class BodyTooLarge(exceptions.APIException):
    """The request's body is over the limit."""

    status_code = 413

    def __init__(self, most: int) -> None:
        super().__init__(_("The request is larger than %(most)s MiB.") % {"most": most >> 20})


def details(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """The body: `type`, `title`, `status`, `detail`, and what belongs to this kind of problem."""
    title = HTTPStatus(status).phrase
    return {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}


def refuse_file(text: str, problems: Iterable[Problem]) -> Response:
    """400 with every problem of a job file, each with its place, its sentence and, if there is one, a fix."""
    found = [finding.to_json() for finding in problems_of(text, problems)]
    body = details(400, _("The job file can't be accepted."), problems=found)
    return Response(body, status=400, content_type=CONTENT_TYPE)


def handle(error: Exception, context: Mapping[str, Any]) -> Response:
    """Django REST framework's handler: its own exceptions, Django's, and ours."""
    status, detail, headers, more = describe(error)
    set_rollback()
    return Response(
        details(status, detail, **more), status=status, headers=headers, content_type=CONTENT_TYPE
    )


def answer(error: Exception) -> JsonResponse:
    """The same outside of Django REST framework."""
    status, detail, headers, more = describe(error)
    body = details(status, detail, **more)
    return JsonResponse(body, status=status, headers=headers, content_type=CONTENT_TYPE)


LONGEST_SENTENCE: Final = 300
"""Characters of a sentence about a field, which may repeat what was sent."""

Description = tuple[int, str, dict[str, str], dict[str, Any]]


def describe(error: Exception) -> Description:
    """Status, sentence, headers and what else there is to say of an exception."""
    if isinstance(error, exceptions.APIException):
        return _of_framework(error)
    if outage.is_outage(error):
        log.warning("database_away", error=str(error))
        return 503, outage_sentence(), {"Retry-After": str(outage.RETRY_AFTER_S)}, {}
    if isinstance(error, folders.FolderRefused):
        return _of_folders(error)
    if isinstance(error, EntryRefused):
        return 409, entry_message(error.code), {}, {"code": error.code}
    if isinstance(error, NotTaken | BadTree | ContentMissing):
        return _of_uploads(error)
    headers = {"Retry-After": str(RETRY_AFTER_S)} if isinstance(error, LimitReached) else {}
    return *_of_ours(error), headers, {}


def internal_error_sentence() -> str:
    """Return the sentence for an internal error."""
    return _("Internal error. It has been logged.")


def outage_sentence() -> str:
    """Return the sentence for a database that is away."""
    return _("Database busy or unavailable. Try again in a moment.")


def _of_framework(error: exceptions.APIException) -> Description:
    asks = isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed)
    header = getattr(error, "auth_header", REALM if asks else "")
    headers = {"WWW-Authenticate": header} if header else {}
    if isinstance(error, exceptions.Throttled):
        headers["Retry-After"] = str(max(1, math.ceil(getattr(error, "wait", None) or 0)))
        return error.status_code, _("Too many requests. Try again later."), headers, {}
    if isinstance(error, exceptions.ValidationError):
        return error.status_code, _("The request can't be accepted."), headers, {"problems": _fields(error)}
    return error.status_code, str(error.detail), headers, {}


def _of_folders(shut: folders.FolderRefused) -> Description:
    status = file_responses.status_of(shut)
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in {429, 503} else {}
    return status, file_responses.sentence_of(shut), headers, {"code": shut.code}


def _of_uploads(error: NotTaken | BadTree | ContentMissing) -> Description:
    """Describe what is wrong with uploaded code, or missing of it."""
    if isinstance(error, ContentMissing):
        more = {"code": "missing", "missing": sorted(error.digests)}
        return 409, upload_message("missing", {}), {}, more
    if isinstance(error, BadTree):
        sentence = upload_message(error.code, {"path": error.path})
        return 400, sentence, {}, {"code": error.code, "path": error.path}
    params = {"most": error.most, "received": error.received}
    status = _UPLOAD_STATUS.get(error.code, 413 if error.most else 400)
    return status, upload_message(error.code, params), {}, {"code": error.code, "received": error.received}


_OURS: Final = (
    (
        (Http404, log_responses.NoSuchLog),
        404,
        gettext_noop("Not found, or no permission."),
    ),
    ((PermissionDenied, submission.Forbidden), 403, gettext_noop("Permission denied.")),
    (submission.Conflict, 409, gettext_noop("This Idempotency-Key was already used for another request.")),
    (submission.StillRunning, 409, gettext_noop("Only a job that has ended can be deleted.")),
    (
        submission.NotEnded,
        409,
        gettext_noop(
            "The job has not ended. To start a second copy, use second_copy=true (job-console "
            "again --second-copy)."
        ),
    ),
    (
        submission.NotWaiting,
        409,
        gettext_noop("Only waiting jobs can be held, and only held jobs can be released."),
    ),
    (stack_dumps.NothingRuns, 409, gettext_noop("The job is not running.")),
    (Overtaken, 409, gettext_noop("The job was changing. Try again.")),
    (
        submission.NotIdle,
        409,
        gettext_noop(
            "Can't keep the job running: it is no longer idle, is already stopping, or has reached "
            "the maximum number of extensions."
        ),
    ),
    (
        FilesRemoved,
        409,
        gettext_noop("Can't keep the files: they have been removed, or the job has not ended."),
    ),
    (NotExtended, 409, gettext_noop("Can't extend the job: not allowed by its template or quota.")),
    (
        submission.MemoryNotChanged,
        409,
        gettext_noop("The job did not run out of memory, or its memory can't be changed by itself."),
    ),
    (log_responses.BadSearch, 400, "%(name)s"),
    (log_responses.BadNumber, 400, gettext_noop("%(name)s must be a whole number.")),
    (LimitReached, 429, gettext_noop("Too many open streams.")),
)
"""Exceptions, statuses and sentences."""


def _of_ours(error: Exception) -> tuple[int, str]:
    for kinds, status, sentence in _OURS:
        if isinstance(error, kinds):
            reason = str(error) if isinstance(error, PermissionDenied) else ""
            return status, reason or _(sentence) % {"name": error}
    log.error("api_failed", exc_info=error)
    return 500, internal_error_sentence()


def not_a_number() -> exceptions.ErrorDetail:
    """Return the error of a parameter that should be a number."""
    return exceptions.ErrorDetail(_("This must be a whole number."), code="invalid")


def cannot_change() -> exceptions.ErrorDetail:
    """Return the error of a suggested change that does not fit the job."""
    return exceptions.ErrorDetail(_("This change can't be applied to the job."), code="invalid")


def blank() -> exceptions.ErrorDetail:
    """Return the error of a text that may not be empty."""
    return exceptions.ErrorDetail(_("Required."), code="blank")


def one_of(*names: str) -> exceptions.ErrorDetail:
    """Return the error of a request that has to have exactly one of some fields."""
    text = _("Exactly one of these is required: %(names)s.") % {"names": ", ".join(names)}
    return exceptions.ErrorDetail(text, code="one_of")


def _shorten(text: str) -> str:
    """A sentence that may repeat what was sent, at most so long as somebody reads."""
    return text if len(text) <= LONGEST_SENTENCE else text[: LONGEST_SENTENCE - 1] + "…"


def _fields(error: exceptions.ValidationError) -> list[dict[str, Any]]:
    """Render the errors of the request's fields in the shape of a job file's problems."""
    detail = error.detail if isinstance(error.detail, dict) else {"": error.detail}
    rows = []
    for name, messages in detail.items():
        pointer = "" if name in {"", "non_field_errors"} else f"/{name}"
        for message in messages if isinstance(messages, list) else [messages]:
            code = getattr(message, "code", "invalid")
            rows.append(Finding(_shorten(str(message)), code, _shorten(pointer)).to_json())
    return rows
