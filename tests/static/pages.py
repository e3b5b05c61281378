"""Pages as base.html makes them, with one thing on each; nothing else of the console takes part."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.template import Context, Engine
from django.test import override_settings

from tests.static.site import Site

ENGINE: Final = Engine(
    dirs=[*settings.TEMPLATES[0]["DIRS"], str(Path(__file__).parent)],
    libraries={
        "django_htmx": "django_htmx.templatetags.django_htmx",
        "i18n": "django.templatetags.i18n",
        "static": "django.templatetags.static",
        "tz": "django.templatetags.tz",
    },
)
BASE: Final = '{% extends "base.html" %}{% block title %}Test{% endblock %}{% block content %}'
CONTEXT: Final = {"live_url": "/stream", "live_since": "0-0", "csrf_token": "t0k3n"}


def put(site: Site, content: str, path: str = "/", **context: Any) -> None:
    """Serve base.html with `content`, a piece of template, as its content."""
    template = ENGINE.from_string(f"{BASE}{content}{{% endblock %}}")
    with override_settings(ROOT_URLCONF="tests.static.urls"):
        site.pages[path] = template.render(Context(CONTEXT | context))


def put_merged(site: Site) -> None:
    """Serve a page with the logs of all replicas."""
    put(
        site,
        '{% include "components/merged_log.html" %}',
        merged_url="/merged",
        stream_url="/stream",
        download_url="/merged?download=1",
        job="job:abc",
    )


def put_log(site: Site) -> None:
    """Serve a page with the log of one replica."""
    put(
        site,
        '{% include "components/log_view.html" %}',
        logs_url="/logs",
        stream_url="/stream",
        role="worker",
        index=0,
        job="job:abc",
        anchors=True,
    )
