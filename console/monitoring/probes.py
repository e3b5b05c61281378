"""Access to the detailed probes: the token, or an admin of the console.

That somebody is on this machine says nothing: jobs are.
"""

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

from quotas.access import administers
from quotas.models import User

View = Callable[[HttpRequest], HttpResponse]


def operators_only(view: View) -> View:
    """Answer 403 unless the caller is an operator."""

    @wraps(view)
    def check_access(request: HttpRequest) -> HttpResponse:
        return view(request) if is_operator(request) else HttpResponse(status=403)

    return check_access


def is_operator(request: HttpRequest) -> bool:
    """Return whether the caller shows CONSOLE_METRICS_TOKEN, or is signed in as an admin of the console."""
    if settings.CONSOLE_METRICS_TOKEN and "Authorization" in request.headers:
        expected = f"Bearer {settings.CONSOLE_METRICS_TOKEN}"
        return constant_time_compare(request.headers["Authorization"], expected)
    return isinstance(request.user, User) and administers(request.user)
