"""Middleware: a person's language and time zone, the origin of a request, pages of buttons' addresses, and
characters that no database has.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import Final
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import get_script_prefix, is_valid_path, reverse
from django.utils import timezone, translation
from django.utils.deprecation import MiddlewareMixin

from console.configuration.logging import without_secrets
from jobs.api.vendors import registry
from quotas import audit
from quotas.access import Visitor
from quotas.audit import origin
from quotas.audit.origin import Origin
from quotas.models import Action, User, Way

View = Callable[[HttpRequest], HttpResponseBase]


def person_settings(get_response: View) -> View:
    """Activate the account's language and time zone, which precede the browser's."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        _apply(request, request.user)
        return get_response(request)

    return respond


class NullCharacters(MiddlewareMixin):
    """Refuses requests with a null character where the database would be asked for it.

    PostgreSQL's texts have none; for a job file the position is reported instead.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Raise BadRequest for one in the address."""
        if "\0" in request.path_info or "\0" in unquote(request.META.get("QUERY_STRING", "")):
            raise BadRequest("The address has a null character.")

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Raise BadRequest for one in a form."""
        if isinstance(exception, DataError) and "NUL (0x00)" in str(exception):
            raise BadRequest("A field has a null character.") from exception


def record_origin(get_response: View) -> View:
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


def page_instead(get_response: View) -> View:
    """Lead a browser that opens the address of a button to the page of the button.

    It does so from a bookmark, and after somebody had to sign in again.  Scripts get the 405.
    """

    def respond(request: HttpRequest) -> HttpResponseBase:
        return _page_instead(request, get_response(request))

    return respond


def _page_instead(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    is_opened = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
    is_page = is_opened and "HX-Request" not in request.headers and not request.path_info.startswith("/api/")
    if response.status_code != 405 or not is_page:
        return response
    match = request.resolver_match
    if match and match.view_name in _PAGES:
        page = _PAGES[match.view_name]
        return redirect(reverse(page, kwargs=match.kwargs if page == "members" else {}))
    path = request.path_info
    while path.rstrip("/"):
        path = path.rstrip("/").rpartition("/")[0] + "/"
        for address in (path.rstrip("/"), path):
            if address and is_valid_path(address):
                return redirect(get_script_prefix().rstrip("/") + address)
    return response


_PAGES: Final = {
    "job_check": "job_new",
    "job_convert": "job_new",
    "job_fix": "job_new",
    "job_form_change": "job_new",
    "job_form_read": "job_new",
    "job_difference": "job_new",
    "job_form_panel": "job_new",
    "job_form_sent": "job_new",
    "job_form_dry_run_new": "job_new",
    "oidc_ended": "login",
    "invite": "members",
    "service_new": "members",
}
"""Addresses of buttons whose page is none of the addresses above their own."""


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
