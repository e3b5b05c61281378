"""Idempotency-Key: a request that comes again creates nothing again."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import submission
from jobs.api.native.base import NativeView
from jobs.models import StoredAnswer

P = ParamSpec("P")
V = TypeVar("V", bound=NativeView)
Post = Callable[Concatenate[V, Request, P], Response]

LONGEST_KEY: Final = 255
KEPT: Final = timedelta(days=1)
REPLAYED: Final = {"Idempotent-Replayed": "true"}
IDEMPOTENCY_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="The same key and request again answer 200 with what was created; another request, 409.",
)


def key_of(view: NativeView) -> str | None:
    """Return the request's Idempotency-Key, if any.  Raises ValidationError."""
    key = view.request.headers.get("Idempotency-Key", "")
    if len(key) > LONGEST_KEY or not key.isprintable() or not key.isascii():
        raise ValidationError({"Idempotency-Key": f"At most {LONGEST_KEY} printable characters."})
    return key or None


def idempotent(post: Post[V, P]) -> Post[V, P]:
    """Store the answer of a creating method under the request's key, in the transaction that creates.

    The key of a request that was refused can be used again.
    """

    @wraps(post)
    def answer(view: V, request: Request, /, *args: P.args, **kwargs: P.kwargs) -> Response:
        key = key_of(view)
        if key is None:
            return post(view, request, *args, **kwargs)
        with transaction.atomic():
            row = _claim(view, request, key)
            if row.status:
                return Response(row.body, headers=REPLAYED)
            response = post(view, request, *args, **kwargs)
            if response.status_code < 400:
                row.status, row.body = response.status_code, json.loads(JSONRenderer().render(response.data))
                row.save(update_fields=["status", "body"])
            else:
                row.delete()
        return response

    return answer


def _claim(view: NativeView, request: Request, key: str) -> StoredAnswer:
    """Return the row of the key, a new one or that of an earlier request.  Raises Conflict."""
    StoredAnswer.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    digest = _digest(request)
    row, _created = StoredAnswer.objects.get_or_create(
        owner=view.person, key=key, defaults={"digest": digest}
    )
    if row.digest != digest:
        raise submission.Conflict
    return row


def _digest(request: Request) -> str:
    """Return a keyed digest of method, address and body, which may have a secret in it."""
    body: Any = json.dumps(request.data, sort_keys=True)
    text = "\0".join((str(request.method), request.get_full_path(), body))
    return salted_hmac("idempotency", text, algorithm="sha256").hexdigest()
