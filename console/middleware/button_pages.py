"""Middleware: a page instead of the address of a button, which takes no GET."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import get_script_prefix, is_valid_path, reverse


def page_instead(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
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
