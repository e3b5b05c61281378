"""Who may ask how the console is: anybody on this machine, or whoever has the token."""

import ipaddress
from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

View = Callable[[HttpRequest], HttpResponse]

_PROXY_HEADERS = ("X-Forwarded-For", "Forwarded", "X-Real-Ip")


def operators_only(view: View) -> View:
    """Answer 403 unless the caller has CONSOLE_METRICS_TOKEN, or is on this machine when there is no token.

    Behind a reverse proxy on this machine every caller seems local, so whoever was forwarded is not.
    """

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        return view(request) if _allowed(request) else HttpResponse(status=403)

    return guarded


def _allowed(request: HttpRequest) -> bool:
    if settings.CONSOLE_METRICS_TOKEN:
        given = request.headers.get("Authorization", "")
        return constant_time_compare(given, f"Bearer {settings.CONSOLE_METRICS_TOKEN}")
    return not any(name in request.headers for name in _PROXY_HEADERS) and _is_loopback(request)


def _is_loopback(request: HttpRequest) -> bool:
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
