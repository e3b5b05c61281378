"""`GET /schemas/<dialect>.json`: each dialect's JSON Schema (2020-12), for editors anywhere.

Anybody may read them: they say what the vendors' public pages say, hold nothing of this console's, and
editors that follow a `$schema` address bring no cookie and no token.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from typing import Final

from django.conf import settings
from django.http import Http404, HttpResponse
from django.utils import translation
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from jobs import dialects
from jobs.api.native import shapes
from jobs.api.native.base import NativeView

CONTENT_TYPE: Final = "application/schema+json"
MAX_AGE_S: Final = 3600
DESCRIBED_BY: Final = ("description", "title")


class Schema(NativeView):
    """One schema."""

    authentication_classes: Sequence[type[BaseAuthentication]] = ()
    permission_classes: Sequence[type[BasePermission]] = ()
    throttle_classes: Sequence[type[BaseThrottle]] = ()  # it is public, and cached

    @extend_schema(
        operation_id="dialect_schema",
        auth=[],
        parameters=[
            OpenApiParameter("dialect", str, OpenApiParameter.PATH, enum=dialects.NAMES),
            OpenApiParameter("lang", str, description="en, zh-hans or ja; else Accept-Language decides"),
        ],
        responses={
            (200, CONTENT_TYPE): OpenApiResponse(OpenApiTypes.OBJECT, description="JSON Schema 2020-12"),
            304: OpenApiResponse(description="as `If-None-Match` knows it"),
            404: shapes.ProblemDetails,
        },
    )
    def get(self, request: Request, dialect: str) -> HttpResponse:
        """The dialect's keys, each described in the reader's language."""
        if dialect not in dialects.NAMES:
            raise Http404
        body, etag = _render(dialect, _language(request))
        response = HttpResponse(body, content_type=f"{CONTENT_TYPE}; charset=utf-8")
        response["ETag"] = etag
        response["Cache-Control"] = f"public, max-age={MAX_AGE_S}"
        patch_vary_headers(response, ("Accept-Language",))
        found: HttpResponse | None = get_conditional_response(request, etag=etag, response=response)
        return found or response


def _language(request: Request) -> str:
    """One of ours; what the person chose for pages plays no part, or the address could not be cached."""
    language = request.query_params.get("lang", "")
    headers = [language] if language else request.headers.get("Accept-Language", "").split(",")
    for each in headers:
        try:
            return translation.get_supported_language_variant(each.partition(";")[0].strip().lower())
        except LookupError:
            continue
    return settings.LANGUAGE_CODE


@cache
def _render(dialect: str, language: str) -> tuple[bytes, str]:
    """The schema in that language, and its entity tag."""
    with translation.override(language):
        described = _translate(dialects.get(dialect).schema())
    body = json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode()
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _translate(value: object) -> object:
    """`value` with its descriptions in the language that is active; a property called so is none."""
    if isinstance(value, list):
        return [_translate(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: gettext(inner) if key in DESCRIBED_BY and inner and isinstance(inner, str) else _translate(inner)
        for key, inner in value.items()
    }
