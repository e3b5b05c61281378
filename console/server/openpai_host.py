"""OpenPAI's REST server under a host name of its own, for clients that can be told no path."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.http.request import split_domain_port

PREFIX: Final = "/rest-server"


def with_prefix(scope: Any) -> Any:
    """Return the scope of a request, with OpenPAI's prefix before a path under OpenPAI's host name."""
    name = settings.CONSOLE_OPENPAI_HOST
    if not name or scope["path"].startswith(f"{PREFIX}/") or _host(scope) != name:
        return scope
    raw_path = scope.get("raw_path")
    prefixed = {"path": PREFIX + scope["path"]}
    if raw_path:
        prefixed["raw_path"] = PREFIX.encode() + raw_path
    return {**scope, **prefixed}


def _host(scope: Any) -> str:
    """Return the host name that the client asked for, without its port."""
    found = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return split_domain_port(found.decode("latin-1"))[0]
