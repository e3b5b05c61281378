"""Who a sign-in belongs to, asked by what outlives a request: streams, and the endpoints' gateway."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from quotas.access import is_active
from quotas.models import User


def person_of(session_key: str) -> User | None:
    """Whoever is signed in by that session at this moment.

    None after signing out, after the session's end, after a change of password elsewhere, and for an account
    that was disabled.
    """
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return user if isinstance(user, User) and is_active(user) else None
