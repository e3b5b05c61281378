"""The console's address, for links that leave the page: never a Host header's, which anybody may write."""

from __future__ import annotations

from django.conf import settings


def absolute(path: str) -> str:
    """Return `path` as people reach it."""
    return f"{settings.CONSOLE_URL}{path}"
