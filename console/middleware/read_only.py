"""While the console is read-only, nobody but its admins changes anything through a page or an API.

Jobs run on, workers work on, entries into jobs stay open; people sign in and out and look.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.translation import gettext as _

from jobs.api.native.auth import bearer
from jobs.api.native.problems import CONTENT_TYPE, details
from jobs.api.vendors import registry
from quotas.access import administers
from quotas.accounts import tokens
from quotas.models import ReadOnly

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
CHANGES_NOTHING: Final = frozenset(
    {
        *("livez", "readyz", "healthz", "metrics"),
        *("account_login", "account_logout", "account_reauthenticate"),
        *("mfa_authenticate", "mfa_reauthenticate"),
        *("login", "logout", "set_language", "set_theme", "banner_dismiss"),
        *("courier", "tracking"),  # what jobs that run on have to say
        *("job_check", "job_fix", "job_convert", "api_check", "api_convert", "job_files_zip"),
    }
)
"""Addresses that are asked by POST and change nothing that others see."""
RETRY_AFTER_S: Final = 300


def read_only(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Refuse changes while there is a row that says so; after AuthenticationMiddleware."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        asks = request.method in SAFE or _changes_nothing(request)
        refused = None if asks else _refuse(request)
        return refused if refused is not None else get_response(request)

    return respond


def _refuse(request: HttpRequest) -> HttpResponse | None:
    now = ReadOnly.objects.first() if ReadOnly.is_on() else None
    if now is None or _goes_on(request):
        return None
    why = _("The console is read-only for now: %(why)s") % {"why": now.why}
    if _wants_json(request):
        body = details(HTTPStatus.SERVICE_UNAVAILABLE, why)
        answer: HttpResponse = JsonResponse(body, status=503, content_type=CONTENT_TYPE)
    else:
        answer = render(request, "console/read_only.html", {"why": now.why}, status=503)
    answer.headers["Retry-After"] = str(RETRY_AFTER_S)
    return answer


def _goes_on(request: HttpRequest) -> bool:
    """Whether this is an admin of the console, or somebody who signs in."""
    token = bearer(request)
    if token:
        row = tokens.verify(token)
        if row is not None and administers(row.user):
            return True
    elif administers(request.user):
        return True
    signs_in = not request.user.is_authenticated and "Authorization" not in request.headers
    return signs_in and not _wants_json(request)


def _changes_nothing(request: HttpRequest) -> bool:
    """Whether nothing that others see changes by it; signing in, by whichever way, is such a thing.

    A vendor's API refuses by itself, as it alone knows who calls.
    """
    if registry.find(request):
        return True
    try:
        name = resolve(request.path_info).url_name or ""
    except Resolver404:
        return True
    return name in CHANGES_NOTHING


def _wants_json(request: HttpRequest) -> bool:
    return (
        request.path.startswith("/api/")
        or request.get_preferred_type(["text/html", "application/json"]) == "application/json"
    )
