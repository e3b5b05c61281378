"""The names that base.html looks for, so that what is tested here is the front end alone."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path


def nowhere(request: HttpRequest) -> HttpResponse:
    """Never called: the site under test answers."""
    raise NotImplementedError


urlpatterns = [
    path("", nowhere, name="home"),
    path("sign-in", nowhere, name="login"),
    path("sign-out", nowhere, name="logout"),
    path("search", nowhere, name="search"),
    path("language", nowhere, name="set_language"),
    path("theme", nowhere, name="set_theme"),
]
