"""Middleware: the language and the time zone of the account."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation

from quotas.access import Visitor
from quotas.models import User


def person_settings(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Activate the account's language and time zone, which precede the browser's."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        _apply(request, request.user)
        return get_response(request)

    return respond


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
