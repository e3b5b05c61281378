"""Accounts that need a second factor can only set one up, or sign out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import Resolver404, resolve

from console.sign_in.arrival import SECOND_FACTOR_KEY
from quotas.access import Visitor
from quotas.accounts import second_factors
from quotas.models import User

_OPEN: Final = frozenset(
    {
        "login",
        "logout",
        "account_login",
        "account_logout",
        "account_reauthenticate",
        "account_change_password",
        "account_set_password",
        "sign_in_settings",
        "set_language",
        "set_theme",
        "jsi18n",
        "livez",
        "readyz",
        "healthz",
        "metrics",
    }
)


def require_second_factor(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Lead whoever needs a second factor to where it is set up; scripts with a token are not asked."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        refused = refusal(request, request.user) if _asks() else None
        return refused or get_response(request)

    return respond


def _asks() -> bool:
    return bool(settings.CONSOLE_SECOND_FACTOR != "optional")


def refusal(request: HttpRequest, user: Visitor) -> HttpResponse | None:
    """The answer to somebody who has yet to set a second factor up."""
    if not isinstance(user, User) or not second_factors.needs(user) or request.session.get(SECOND_FACTOR_KEY):
        return None
    if _is_open(request.path) or second_factors.has(user):
        return None
    if request.method == "GET" and "text/html" in request.headers.get("Accept", ""):
        return redirect("sign_in_settings")
    return HttpResponse(status=403)


def _is_open(path: str) -> bool:
    try:
        name = resolve(path).url_name or ""
    except Resolver404:
        return False
    return name in _OPEN or name.startswith("mfa_")
