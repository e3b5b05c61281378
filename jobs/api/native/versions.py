"""Entity tags: `If-None-Match` saves an answer that is known already, `If-Match` an overwritten change.

The tag of an object with a version is `"VERSION-DIGEST"`.  A reader's copy is stale when the digest differs;
a change is refused when the version does.
"""

from __future__ import annotations

import hashlib
from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import get_conditional_response, patch_cache_control
from django.utils.http import parse_etags
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException
from rest_framework.response import Response

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
DIGEST_LENGTH: Final = 22
IF_NONE_MATCH: Final = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="answer 304 if this is still its `ETag`"
)
IF_MATCH: Final = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="refuse with 412 if its `ETag` has another version"
)


class PreconditionFailed(APIException):
    """The object has another version than If-Match names, or has no versions."""

    status_code = 412

    def __init__(self, *, versioned: bool = True) -> None:
        changed = _("This was changed meanwhile. Read it again, then repeat the change.")
        super().__init__(changed if versioned else _("If-Match is not supported here."))


def require_version(if_match: str, version: int) -> None:
    """Raise PreconditionFailed unless one of the tags is of that version; weak tags never are."""
    tags = parse_etags(if_match)
    if tags != ["*"] and all(tag.strip('"').partition("-")[0] != str(version) for tag in tags):
        raise PreconditionFailed


def add_tag(response: Response, request: HttpRequest, version: int | None) -> None:
    """Have a rendered answer get its tag, or become a 304 for a reader who has it."""

    def tag(rendered: Response) -> HttpResponseBase | None:
        digest = hashlib.sha256(rendered.content).hexdigest()[:DIGEST_LENGTH]
        etag = f'"{digest}"' if version is None else f'"{version}-{digest}"'
        rendered["ETag"] = etag
        patch_cache_control(rendered, private=True, no_cache=True)
        if version is not None:  # compressed, the tag would be a weak one, which If-Match takes for none
            patch_cache_control(rendered, no_transform=True)
        return get_conditional_response(request, etag, None, rendered)

    response.add_post_render_callback(tag)
