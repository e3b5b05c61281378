"""Middleware: pages and JSON are sent compressed to clients that accept it.

Streams are sent as they are, and so is what says `Cache-Control: no-transform`.  Django masks CSRF tokens
anew for each answer, and its compression adds bytes of a random length, so that lengths tell nothing about
a secret beside reflected input (BREACH).  Static files are compressed ahead, by servestatic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

TYPES: Final = frozenset(
    {
        *("text/html", "text/css", "text/javascript", "text/csv"),
        *("application/json", "application/problem+json"),
    }
)
LEAST_BYTES: Final = 1024
"""Shorter answers fit into one packet anyway."""

_GZIP: Final = GZipMiddleware(lambda _request: HttpResponse())


def compress_answers(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Compress whole answers of text."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        return _compress(request, get_response(request))

    return respond


def _compress(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if not isinstance(response, HttpResponse) or len(response.content) < LEAST_BYTES:
        return response
    kind = response.get("Content-Type", "").partition(";")[0].strip()
    if kind not in TYPES or "no-transform" in response.get("Cache-Control", ""):
        return response
    return _GZIP.process_response(request, response)
