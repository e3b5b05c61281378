"""Confirmation that it is still them, before people change how they sign in, or make a key or a token.

A stolen cookie alone must not become a way in that outlives it.  Whoever has a password or a second factor
here is asked for it (django-allauth's pages).  Whoever has neither, as a directory or a provider vouches for
them, has to have signed in within the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from allauth.account import app_settings
from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.internal.flows.reauthentication import (
    get_reauthentication_flows,
    raise_if_reauthentication_required,
)
from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import ngettext

from quotas.models import User

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def require_confirmation(view: View) -> View:
    """Let only somebody through who has confirmed who they are; looking (GET) is for everybody signed in."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        looks = request.method in {"GET", "HEAD"} or not isinstance(request.user, User)
        return (None if looks else request_confirmation(request)) or view(request, *args, **kwargs)

    return cast("View", answer)


def request_confirmation(request: HttpRequest) -> HttpResponseBase | None:
    """Return where somebody signs in anew, None if they confirmed.  Raises ReauthenticationRequired."""
    assert isinstance(request.user, User)
    if get_reauthentication_flows(request.user):
        raise_if_reauthentication_required(request, app="allauth.account")
        return None
    if _came_recently(request, request.user):
        return None
    minutes = app_settings.REAUTHENTICATION_TIMEOUT // 60
    text = ngettext(
        "This action requires a sign-in within the last minute. Sign out and sign in again first.",
        "This action requires a sign-in within the last %(count)d minutes. Sign out and sign in again first.",
        minutes,
    )
    notes.error(request, text % {"count": minutes})
    return redirect("sign_in_settings")


def _came_recently(request: HttpRequest, user: User) -> bool:
    records = get_authentication_records(request, user)
    return bool(records) and time.time() - records[-1]["at"] < app_settings.REAUTHENTICATION_TIMEOUT
