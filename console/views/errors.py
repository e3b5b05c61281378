"""The pages of what went wrong; as problem details (RFC 9457) for whoever asked for JSON."""

from __future__ import annotations

import sys
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.template.loader import get_template

from jobs.api.native.problems import internal_error_sentence, outage_sentence
from jobs.api.vendors import registry
from jobs.models import outage

JSON_PATHS = ("/api/", "/schemas/")
"""Beginnings of the addresses at which programs call: errors there are never pages."""


def _answer(request: HttpRequest, status: HTTPStatus, detail: str = "") -> HttpResponseBase:
    if vendor := registry.refuse(request, status.value, detail or status.phrase):
        return vendor
    if request.path.startswith(JSON_PATHS):
        problem = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
        return JsonResponse(problem, status=status, content_type="application/problem+json")
    return render(request, f"{status.value}.html", {"exception": detail}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """400."""
    return _answer(request, HTTPStatus.BAD_REQUEST)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """403, with the sentence that says who may."""
    return _answer(request, HTTPStatus.FORBIDDEN, str(exception))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """404; never says whether it ever was."""
    return _answer(request, HTTPStatus.NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """500; 503 when it was the database that was away or busy, so that the same may be tried again."""
    if outage.is_outage(sys.exc_info()[1]):
        answer = _without_context(request, HTTPStatus.SERVICE_UNAVAILABLE, outage_sentence())
        answer.headers["Retry-After"] = str(outage.RETRY_AFTER_S)
        return answer
    return _without_context(request, HTTPStatus.INTERNAL_SERVER_ERROR, internal_error_sentence())


def _without_context(request: HttpRequest, status: HTTPStatus, detail: str) -> HttpResponseBase:
    """An answer for which nobody is looked up, as that might be what failed."""
    if request.path.startswith(JSON_PATHS) or registry.find(request):
        return _answer(request, status, detail)
    return HttpResponse(get_template(f"{status.value}.html").render(), status=status)
