"""Host names: which of them are endpoints', and where the console and its endpoints are reached.

Nothing here trusts a Host header further than to compare it: one that is not exactly
`<slug>.<CONSOLE_APPS_DOMAIN>` gets nowhere, which is also what defeats DNS rebinding.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from jobs.access.gateway.asgi import Scope

OWN: Final = "/.job-console/"
"""Paths of an endpoint's host that are the gateway's."""


@lru_cache(maxsize=4)
def _pattern(domain: str) -> re.Pattern[str]:
    return re.compile(rf"([a-z0-9](?:[a-z0-9-]{{0,61}}[a-z0-9])?)\.{re.escape(domain)}(?::\d{{1,5}})?")


def hosts(scope: Scope) -> list[str]:
    """Every Host header of the request, in lower case."""
    return [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]


def is_apps_host(host: str) -> bool:
    """Tell whether `host` lies under the apps' domain, and so is nothing of the console's."""
    name, domain = split_domain_port(host)[0], settings.CONSOLE_APPS_DOMAIN
    return bool(name == domain or name.endswith(f".{domain}"))


def slug_of(host: str) -> str | None:
    """The endpoint's slug in `<slug>.<apps domain>[:port]`; None for every other name."""
    found = _pattern(settings.CONSOLE_APPS_DOMAIN).fullmatch(host)
    return found[1] if found else None


def is_known(host: str) -> bool:
    """Tell whether a Host header names the console or an endpoint."""
    name, _port = split_domain_port(host)
    return bool(name) and (is_apps_host(host.lower()) or validate_host(name, settings.ALLOWED_HOSTS))


def scheme_of(scope_scheme: str) -> str:
    """How browsers came: `https` behind a TLS proxy too."""
    return "https" if settings.CONSOLE_TLS or scope_scheme in {"https", "wss"} else "http"


def endpoint_origin(request: HttpRequest, slug: str) -> str:
    """The endpoint's origin for somebody who reached the console by `request`."""
    port = split_domain_port(request.get_host())[1]
    host = f"{slug}.{settings.CONSOLE_APPS_DOMAIN}"
    return f"{scheme_of(request.scheme or 'http')}://{host}{port and f':{port}'}"


def console_origin(scheme: str, host: str, wanted: str | None = None) -> str:
    """The console's origin for somebody who is at the endpoint `host`.

    `wanted` is the console's host as the person knows it; it is believed only if it is one of the console's.
    """
    if wanted and validate_host(split_domain_port(wanted)[0], settings.ALLOWED_HOSTS):
        return f"{scheme}://{wanted.lower()}"
    named = [name.lstrip(".") for name in settings.CONSOLE_HOSTS if name != "*"]
    port = split_domain_port(host)[1]
    return f"{scheme}://{named[0] if named else 'localhost'}{port and f':{port}'}"


def opening_path(slug: str, **query: str) -> str:
    """The console's address (path and query) that opens the endpoint."""
    return reverse("endpoint_open", args=[slug]) + _query(query)


def own_path(name: str, **query: str) -> str:
    """The address (path and query) of one of the gateway's own pages."""
    return OWN + name + _query(query)


def _query(values: dict[str, str]) -> str:
    pairs = [f"{name}={quote(value, safe='/')}" for name, value in values.items() if value]
    return "?" + "&".join(pairs) if pairs else ""


def safe_path(wanted: str | None) -> str:
    """`wanted` if it is a path of the same host, with its query; else `/`."""
    if not wanted or not wanted.startswith("/") or not wanted.isascii():
        return "/"
    path = wanted.partition("#")[0]
    here = url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return path if here and path.isprintable() and " " not in path else "/"
