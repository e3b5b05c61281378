"""Helpers of all views: signed-in requests, pages and fragments, pagination, downloads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django import forms
from django.contrib.auth.views import redirect_to_login
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django_htmx.middleware import HtmxDetails

from jobs.live import cursor
from quotas.models import User

P = ParamSpec("P")
M = TypeVar("M", bound=Model)


class SignedIn(HttpRequest):
    """A request of a signed-in user with an active account."""

    user: User
    htmx: HtmxDetails


def signed_in(
    view: Callable[Concatenate[SignedIn, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Redirect anonymous requests to the sign-in page; a request for JSON gets 401 instead."""

    @wraps(view)
    def wrapper(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)  # type: ignore[arg-type]  # just narrowed
        if request.headers.get("Accept", "").startswith("application/json"):
            return HttpResponse(status=401)
        return redirect_to_login(request.get_full_path())

    return wrapper


def live(request: SignedIn) -> dict[str, Any]:
    """Return the address of the page's event stream and its cursor; call it before any query.

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


def number(text: str | None, digits: int = 18) -> int | None:
    """Return the whole number in a query or form, or None for anything else."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= digits else None


def slice_before(rows: QuerySet[M], before: str, size: int) -> tuple[list[M], int | None]:
    """Return the newest rows before the key in the query, and the key before which the next page begins."""
    key = number(before)
    found = list((rows.filter(pk__lt=key) if key else rows).order_by("-pk")[: size + 1])
    return found[:size], found[size - 1].pk if len(found) > size else None


def text_response(text: str, name: str = "", status: int = 200) -> HttpResponse:
    """Return a text that no cache stores; with a name, as a download."""
    response = HttpResponse(text, status=status, content_type="text/plain; charset=utf-8")
    if name:
        response["Content-Disposition"] = f'attachment; filename="{name}"'
    patch_cache_control(response, private=True, no_store=True)
    return response


def set_choices(field: forms.Field, choices: list[Any]) -> None:
    """Set the choices of a form's choice field."""
    assert isinstance(field, forms.ChoiceField)
    field.choices = choices
