"""Middleware: the origin of a request for the audit log, and its refusal there."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

from django.http import HttpRequest, HttpResponseBase

from console.configuration.logging import without_secrets
from jobs.api.vendors import registry
from quotas import audit
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.models import Action, Way


def record_origin(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Set the origin of the request for the audit log, and log its refusal.

    After AuthenticationMiddleware.
    """

    def respond(request: HttpRequest) -> HttpResponseBase:
        with origin.of(_origin(request)) as request_origin:
            response = get_response(request)
            if _is_refused(request, response) and not request_origin.refusal_logged:
                _log_refusal(request, response, request_origin)
            return response

    return respond


def _origin(request: HttpRequest) -> Origin:
    """The server has already put the address that trusted proxies tell in the place of their own."""
    way = next((way for start, way in _WAYS if request.path.startswith(start)), Way.PAGE)
    way = Way.API if registry.find(request) else way
    return Origin(way, name="", address=_address(request.META.get("REMOTE_ADDR", "")), request=request)


_WAYS = (("/api/", Way.API), ("/admin/", Way.ADMIN))


def _address(text: str) -> str:
    """An IP address without a zone; nothing for a Unix socket's peer."""
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return ""


def _is_refused(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Return whether a response is a refusal: a redirect to sign-in is none, an invalid token is."""
    return response.status_code == 403 or (response.status_code == 401 and "Authorization" in request.headers)


_SECRETS = frozenset({"key", "secret", "token"})
"""Parts of addresses that are not written down; `token` is also a row's number, which nobody misses."""


def _log_refusal(request: HttpRequest, response: HttpResponseBase, request_origin: Origin) -> None:
    match = request.resolver_match
    details = {
        "method": request.method,
        "path": without_secrets(request.path),
        "status": response.status_code,
        **({"next": without_secrets(request.GET["next"][:200])} if "next" in request.GET else {}),
        **{key: str(value) for key, value in (match.kwargs if match else {}).items() if key not in _SECRETS},
    }
    failed = response.status_code == 401
    audit.log_refusal(
        (match.view_name if match else "") or without_secrets(request.path),
        action=Action.SIGN_IN_FAILED if failed else Action.USE,
        details=details,
        request_origin=request_origin,
    )
