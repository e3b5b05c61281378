"""Middleware: the time that each answer takes to begin, by route."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from jobs.live import timings

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Others are one label: whoever asks must not be able to make series."""


@sync_and_async_middleware
def time_requests(
    get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]],
) -> Callable[[HttpRequest], Any]:
    """Record how long a request takes until its answer begins; a stream's length does not count."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            began = time.monotonic()
            response = await cast("Awaitable[HttpResponseBase]", get_response(request))
            _record(request, response, time.monotonic() - began)
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        began = time.monotonic()
        response = cast("HttpResponseBase", get_response(request))
        _record(request, response, time.monotonic() - began)
        return response

    return synchronous


def _record(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    match = request.resolver_match
    route = (match.view_name or match.route) if match else ""
    method = request.method if request.method in METHODS else "other"
    timings.http_requests.labels(method, route, response.status_code).observe(seconds)
