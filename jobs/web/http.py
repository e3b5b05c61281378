"""What every page's view begins with: who asks, and whether htmx does."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django_htmx.middleware import HtmxDetails

from jobs.live import cursor
from quotas.models import User

P = ParamSpec("P")


class SignedIn(HttpRequest):
    """A request of somebody whose account works."""

    user: User
    htmx: HtmxDetails


def signed_in(
    view: Callable[Concatenate[SignedIn, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Send everybody else to sign in; a script that expects JSON gets 401 instead of that page."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)  # type: ignore[arg-type]  # just narrowed
        if request.headers.get("Accept", "").startswith("application/json"):
            return HttpResponse(status=401)
        return redirect_to_login(request.get_full_path())

    return guarded


def live(request: SignedIn) -> dict[str, Any]:
    """Where the page hears of changes, and since when; call it before the page reads anything.

    Fragments need neither: the page they belong to already listens.
    """
    if request.htmx:
        return {}
    return {"live_url": reverse("live"), "live_since": cursor.at_render()}


def page(
    request: SignedIn,
    template: str,
    context: dict[str, Any],
    *,
    fragments: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render `template`, or, when htmx asks for the element of that id, the partial that draws it.

    One view, one context and one permission check serve the page and its fragments.
    """
    partial = (fragments or {}).get(request.htmx.target or "") if request.htmx else None
    response = render(request, partial or template, context, status=status)
    patch_vary_headers(response, ("HX-Request", "HX-Target"))
    # A page may be kept for the way back to it, with what was typed there; a fragment is never a page.
    if partial:
        patch_cache_control(response, private=True, no_store=True)
    else:
        patch_cache_control(response, private=True, no_cache=True)
    return response
