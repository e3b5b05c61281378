"""Language and time zone as the person chose them, and whence a request comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation
from django.utils.decorators import sync_and_async_middleware

from quotas import audit, origin
from quotas.access import Visitor
from quotas.models import Action, User, Way
from quotas.origin import Origin

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


@sync_and_async_middleware
def whence(get_response: Callable[[HttpRequest], Answer]) -> Callable[[HttpRequest], Any]:
    """Let the audit trail know where the request comes from, and write down that it was refused.

    Async under ASGI like the others; after AuthenticationMiddleware.
    """
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            with origin.of(_origin(request)) as came:
                response = await cast("Awaitable[HttpResponseBase]", get_response(request))
                if _is_refused(request, response) and not came.told:
                    await sync_to_async(_tell_refused)(request, response, came)
                return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        with origin.of(_origin(request)) as came:
            response = cast("HttpResponseBase", get_response(request))
            if _is_refused(request, response) and not came.told:
                _tell_refused(request, response, came)
            return response

    return synchronous


def _origin(request: HttpRequest) -> Origin:
    """The server has already put the address that trusted proxies tell in the place of their own."""
    way = next((way for start, way in _WAYS if request.path.startswith(start)), Way.PAGE)
    return Origin(way, name="", address=_address(request.META.get("REMOTE_ADDR", "")), request=request)


_WAYS = (("/api/", Way.API), ("/admin/", Way.ADMIN))


def _address(text: str) -> str:
    """An IP address without a zone; nothing for a Unix socket's peer."""
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return ""


def _is_refused(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Whoever only has to sign in first was not refused anything; a token that does not work was."""
    return response.status_code == 403 or (response.status_code == 401 and "Authorization" in request.headers)


def _tell_refused(request: HttpRequest, response: HttpResponseBase, came: Origin) -> None:
    match = request.resolver_match
    details = {
        "method": request.method,
        "path": request.path,
        "status": response.status_code,
        **({"next": request.GET["next"][:200]} if "next" in request.GET else {}),
        **{key: str(value) for key, value in (match.kwargs if match else {}).items()},
    }
    failed = response.status_code == 401
    audit.denied(
        (match.view_name if match else "") or request.path,
        action=Action.SIGN_IN_FAILED if failed else Action.USE,
        details=details,
        came=came,
    )


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
