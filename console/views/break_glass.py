"""The way in that `manage.py break_glass` opens: once, for some minutes, from the console's own machine."""

from __future__ import annotations

import ipaddress

import structlog
from allauth.account.adapter import get_adapter
from allauth.account.utils import url_str_to_user_pk
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from quotas import audit
from quotas.accounts import activation, sessions
from quotas.accounts.sessions import Came
from quotas.audit import origin
from quotas.models import Action, User

log = structlog.get_logger(__name__)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def break_glass(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """Ask once more, so that nothing that merely looks at links uses this one up; then sign in."""
    user = _person(uid)
    if not _is_here(request) or user is None or not activation.break_glass.check_token(user, token):
        audit.log_refusal("break_glass", action=Action.BREAK_GLASS, thing=user)
        raise Http404
    if request.method != "POST":
        return render(request, "console/break_glass.html", {"person": user})
    get_adapter(request).login(request, user)
    sessions.remember(request, user, Came("break-glass"))
    with transaction.atomic():
        audit.log(Action.BREAK_GLASS, user, actor=user)
    log.warning("break_glass_sign_in", person=user.get_username())
    return redirect("home")


def _person(uid: str) -> User | None:
    try:
        user = User.objects.filter(pk=url_str_to_user_pk(uid)).first()
    except ValueError:
        return None
    return user if user is not None and activation.may_break_glass(user) else None


def _is_here(request: HttpRequest) -> bool:
    """Whether the browser runs on this machine: not by a proxy, whose address would stand for everybody's."""
    if any(name in request.headers for name in ("X-Forwarded-For", "Forwarded", "X-Real-Ip")):
        return False
    try:
        return ipaddress.ip_address(origin.current().address).is_loopback
    except ValueError:
        return False
