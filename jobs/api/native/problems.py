"""Errors as problem details (RFC 9457), whatever went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from django.core.exceptions import PermissionDenied
from django.http import Http404, JsonResponse
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from jobs import submission
from jobs.access.folders import client as folders
from jobs.access.folders import serving
from jobs.assets.uploads.holding import Missing
from jobs.assets.uploads.store import NotTaken
from jobs.dialects.base import Problem
from jobs.live import raw, seats
from jobs.messages.findings import Finding
from jobs.messages.uploads import upload_message
from jobs.models import outage
from jobs.submission.findings import problems_of
from jobs.trees import BadTree

log = structlog.get_logger(__name__)

CONTENT_TYPE: Final = "application/problem+json"
_UPLOAD_STATUS: Final = {"hash": 422, "busy": 409, "offset": 409, "range": 400}
REALM: Final = 'Bearer realm="job-console"'


class TooLarge(exceptions.APIException):
    """The request's body is over the limit."""

    status_code = 413

    def __init__(self, most: int) -> None:
        super().__init__(_("The request is larger than %(most)s MiB.") % {"most": most >> 20})


def details(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """The body: `type`, `title`, `status`, `detail`, and what belongs to this kind of problem."""
    title = HTTPStatus(status).phrase
    return {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}


def refused(text: str, problems: Iterable[Problem]) -> Response:
    """400 with every problem of a job file, each with its place, its sentence and, if there is one, a fix."""
    found = [finding.to_json() for finding in problems_of(text, problems)]
    body = details(400, _("The job file can't be accepted."), problems=found)
    return Response(body, status=400, content_type=CONTENT_TYPE)


def handle(error: Exception, context: Mapping[str, Any]) -> Response:
    """Django REST framework's handler: its own exceptions, Django's, and ours."""
    status, detail, headers, more = told(error)
    set_rollback()
    return Response(
        details(status, detail, **more), status=status, headers=headers, content_type=CONTENT_TYPE
    )


def answer(error: Exception) -> JsonResponse:
    """The same outside of Django REST framework."""
    status, detail, headers, more = told(error)
    body = details(status, detail, **more)
    return JsonResponse(body, status=status, headers=headers, content_type=CONTENT_TYPE)


LONGEST_SENTENCE: Final = 300
"""Characters of a sentence about a field, which may repeat what was sent."""

Told = tuple[int, str, dict[str, str], dict[str, Any]]


def told(error: Exception) -> Told:
    """Status, sentence, headers and what else there is to say of an exception."""
    if isinstance(error, exceptions.APIException):
        return _of_framework(error)
    if outage.is_outage(error):
        log.warning("database_away", error=str(error))
        return 503, away(), {"Retry-After": str(outage.RETRY_AFTER_S)}, {}
    if isinstance(error, folders.Shut):
        return _of_folders(error)
    if isinstance(error, NotTaken | BadTree | Missing):
        return _of_uploads(error)
    headers = {"Retry-After": str(seats.RETRY_AFTER_S)} if isinstance(error, seats.Full) else {}
    return *_of_ours(error), headers, {}


def broken() -> str:
    """What is told of a mistake of ours."""
    return _("Something went wrong here; it has been noted.")


def away() -> str:
    """What is told when the database is."""
    return _("The database is busy or away. Try again in a moment.")


def _of_framework(error: exceptions.APIException) -> Told:
    asks = isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed)
    header = getattr(error, "auth_header", REALM if asks else "")
    headers = {"WWW-Authenticate": header} if header else {}
    if isinstance(error, exceptions.ValidationError):
        return error.status_code, _("The request can't be accepted."), headers, {"problems": _fields(error)}
    return error.status_code, str(error.detail), headers, {}


def _of_folders(shut: folders.Shut) -> Told:
    status = serving.status_of(shut)
    headers = {"Retry-After": str(seats.RETRY_AFTER_S)} if status in {429, 503} else {}
    return status, serving.sentence_of(shut), headers, {"code": shut.code}


def _of_uploads(error: NotTaken | BadTree | Missing) -> Told:
    """What was sent of uploaded code, or is missing of it."""
    if isinstance(error, Missing):
        more = {"code": "missing", "missing": sorted(error.digests)}
        return 409, upload_message("missing", {}), {}, more
    if isinstance(error, BadTree):
        sentence = upload_message(error.code, {"path": error.path})
        return 400, sentence, {}, {"code": error.code, "path": error.path}
    params = {"most": error.most, "received": error.received}
    status = _UPLOAD_STATUS.get(error.code, 413 if error.most else 400)
    return status, upload_message(error.code, params), {}, {"code": error.code, "received": error.received}


def _of_ours(error: Exception) -> tuple[int, str]:
    match error:
        case Http404() | raw.NoSuchLog():
            return 404, _("There is no such thing, or it is not yours to see.")
        case PermissionDenied():
            return 403, str(error) or _("You may not do this here.")
        case submission.Forbidden():
            return 403, _("You may not do this here.")
        case submission.Conflict():
            return 409, _("This Idempotency-Key was used for another request.")
        case submission.NotWaiting() | submission.StillRunning() | submission.NotEnded():
            return 409, _too_early(error)
        case raw.BadNumber():
            return 400, _("%(name)s must be a whole number.") % {"name": error}
        case seats.Full():
            return 429, _("You have too many streams open.")
        case _:
            log.error("api_failed", exc_info=error)
            return 500, broken()


def _too_early(error: Exception) -> str:
    if isinstance(error, submission.StillRunning):
        return _("Only a job that has ended can be deleted.")
    if isinstance(error, submission.NotEnded):
        return _(
            "The job has not ended. Say second_copy=true (job-console again --second-copy) to start it twice."
        )
    return _("Only what waits can be held, and only what is held released.")


def not_a_number() -> exceptions.ErrorDetail:
    """What is wrong with a parameter that should be a number."""
    return exceptions.ErrorDetail(_("This must be a whole number."), code="invalid")


def _bounded(text: str) -> str:
    """A sentence that may repeat what was sent, at most so long as somebody reads."""
    return text if len(text) <= LONGEST_SENTENCE else text[: LONGEST_SENTENCE - 1] + "…"


def _fields(error: exceptions.ValidationError) -> list[dict[str, Any]]:
    """What is wrong with which field of the request, in the shape of a job file's problems."""
    detail = error.detail if isinstance(error.detail, dict) else {"": error.detail}
    rows = []
    for name, messages in detail.items():
        pointer = "" if name in {"", "non_field_errors"} else f"/{name}"
        for message in messages if isinstance(messages, list) else [messages]:
            code = getattr(message, "code", "invalid")
            rows.append(Finding(_bounded(str(message)), code, _bounded(pointer)).to_json())
    return rows
