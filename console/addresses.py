"""The console's address, for links that are made away from any request."""

from __future__ import annotations

from django.conf import settings


def absolute(path: str) -> str:
    """`path` as people reach it: under the first of the console's names."""
    name = settings.CONSOLE_HOSTS[0].removeprefix(".") if settings.CONSOLE_HOSTS else "localhost"
    if settings.CONSOLE_TLS:
        return f"https://{name}{path}"
    return f"http://{name}:{settings.PORT}{path}"
