"""Language and time zone as the person chose them, on whichever machine they sign in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation
from django.utils.decorators import sync_and_async_middleware

from quotas.access import Visitor
from quotas.models import User

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


@sync_and_async_middleware
def person_settings(get_response: Callable[[HttpRequest], Answer]) -> Callable[[HttpRequest], Any]:
    """What the account says comes before the browser's languages; after AuthenticationMiddleware.

    Async under ASGI, so that streams don't hold a thread for it.
    """
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            _apply(request, await request.auser())
            return await cast("Awaitable[HttpResponseBase]", get_response(request))

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        _apply(request, request.user)
        return cast("HttpResponseBase", get_response(request))

    return synchronous


def _apply(request: HttpRequest, user: Visitor) -> None:
    zone = _zone(user.time_zone) if isinstance(user, User) else None
    if zone is None:
        timezone.deactivate()
    else:
        timezone.activate(zone)
    if isinstance(user, User) and user.language:
        translation.activate(user.language)
        request.LANGUAGE_CODE = translation.get_language()


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None  # one that this machine does not know
