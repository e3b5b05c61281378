"""The pages of what went wrong; as problem details (RFC 9457) for whoever asked for JSON."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

API = "/api/"


def _answer(request: HttpRequest, status: HTTPStatus, detail: str = "") -> HttpResponse:
    if request.path.startswith(API):
        problem = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
        return JsonResponse(problem, status=status, content_type="application/problem+json")
    return render(request, f"{status.value}.html", {"exception": detail}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400."""
    return _answer(request, HTTPStatus.BAD_REQUEST)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with the sentence that says who may."""
    return _answer(request, HTTPStatus.FORBIDDEN, str(exception))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404; never says whether it ever was."""
    return _answer(request, HTTPStatus.NOT_FOUND)
