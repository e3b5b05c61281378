"""The OpenAPI document: what every operation has in common, and examples, added to what views declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from django.utils.translation import get_language
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.native import problems
from jobs.api.native.examples import EXAMPLES

_REFERENCE: Final = "#/components/schemas/ProblemDetails"
_PROBLEM: Final = {problems.CONTENT_TYPE: {"schema": {"$ref": _REFERENCE}}}
_METHODS: Final = frozenset({"get", "put", "post", "patch", "delete"})
_COMMON: Final = {
    "400": "The request can't be accepted; `problems` says why.",
    "401": "The token or the session is missing, wrong or expired.",
    "403": "The caller, or the token's scopes, may not do this.",
    "404": "Not found, or not visible to the caller.",
    "429": "The token's rate limit is reached; repeat after `Retry-After`.",
    "503": "The database is busy or away; repeat after `Retry-After`.",
}
"""Errors of every operation."""

_OF_CHANGES: Final = {"412": "If-Match names another version, or is not supported here."}
_OF_BODIES: Final = {"413": "The request is too large."}
_RETRY_AFTER: Final = {"Retry-After": {"schema": {"type": "integer"}, "description": "seconds"}}
_ETAG: Final = {"ETag": {"schema": {"type": "string"}, "description": "for If-None-Match and If-Match"}}


def complete(result: dict[str, Any], **_given: Any) -> dict[str, Any]:
    """Return the document with the errors, headers and examples that no view repeats."""
    for method, operation in _operations(result):
        responses = operation["responses"]
        for status, about in _errors_of(method, operation).items():
            found = responses.setdefault(status, {"description": about})
            found["description"] = found.get("description") or about
            found["content"] = _PROBLEM
            if status in {"429", "503"}:
                found["headers"] = _RETRY_AFTER
        for response in responses.values():
            _correct_type(response)
        if method == "get" and "application/json" in responses.get("200", {}).get("content", {}):
            responses["200"].setdefault("headers", {}).update(_ETAG)
        operation["responses"] = dict(sorted(responses.items()))
    components = result["components"]["schemas"]
    for shape, example in EXAMPLES.items():
        for name in components.keys() & {shape.__name__, f"Patched{shape.__name__}"}:
            components[name]["examples"] = [example]
    return result


def _operations(result: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in result["paths"].values():
        yield from ((method, each) for method, each in path.items() if method in _METHODS)


def _errors_of(method: str, operation: Mapping[str, Any]) -> dict[str, str]:
    changes = _OF_CHANGES if method != "get" else {}
    return {**_COMMON, **changes, **(_OF_BODIES if "requestBody" in operation else {})}


def _correct_type(response: dict[str, Any]) -> None:
    """Name the media type of problem details."""
    content = response.get("content", {})
    if content.get("application/json", {}).get("schema", {}).get("$ref") == _REFERENCE:
        response["content"] = _PROBLEM


class Schema(SpectacularAPIView):
    """The OpenAPI document, made once in a process for each format and language: it takes a second."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(exclude=True)
    def get(self, request: Request, *_args: Any, **_kwargs: Any) -> HttpResponseBase:
        """Return the document in the accepted format; an unusual query has it made anew."""
        language = request.GET.get("lang") or get_language()
        if set(request.GET) - {"lang"} or language not in dict(settings.LANGUAGES):
            return self._make(request)
        key = (language, request.accepted_renderer.media_type)
        if key in _documents:
            content, headers = _documents[key]
            return HttpResponse(content, headers=headers)
        response = self._make(request)
        response.add_post_render_callback(partial(_keep, key))
        return response

    def _make(self, request: Request) -> Response:
        response: Response = super().get(request)  # type: ignore[no-untyped-call]  # published without types
        return response


_documents: Final[dict[tuple[str, str], tuple[bytes, dict[str, str]]]] = {}
"""Content and headers by language and media type."""


def _keep(key: tuple[str, str], response: HttpResponse) -> None:
    names = ("Content-Type", "Content-Disposition")
    _documents[key] = response.content, {name: response.headers[name] for name in names}
