"""Middleware: the time that each answer takes to begin, by route."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponseBase

from jobs.live import timings

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Others are one label: whoever asks must not be able to make series."""


def time_requests(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Record how long a request takes until its answer begins; a stream's length does not count."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        began = time.monotonic()
        response = get_response(request)
        _record(request, response, time.monotonic() - began)
        return response

    return respond


def _record(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    match = request.resolver_match
    route = (match.view_name or match.route) if match else ""
    method = request.method if request.method in METHODS else "other"
    timings.http_requests.labels(method, route, response.status_code).observe(seconds)
