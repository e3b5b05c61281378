"""Failed sign-ins: how many are too many, and their rows in the audit log.

Wrong passwords are counted by account, however its name is spelled: those from one address, and more of them
from all addresses together.  A browser that has signed in to the account before carries a cookie that says
so; its own mistakes alone count for it, so that nobody else's guesses keep a person out.
"""

from __future__ import annotations

import secrets
import unicodedata
from typing import Any, Final

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.core import signing
from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponse

from quotas import audit
from quotas.audit import origin
from quotas.models import Action, User

DEVICE_SECONDS: Final = 180 * 24 * 3600
_SALT: Final = "console.sign_in.signins.device"
_MARK: Final = "known browser "
"""Begins what stands in place of a known browser's name in the table of attempts."""


def account_name(request: HttpRequest | None, credentials: dict[str, Any] | None) -> str:
    """Return the name by which guesses are counted: one for all spellings of an account's."""
    typed = _typed_name(credentials) or (_typed_name(request.POST.dict()) if request is not None else "")
    return _one_spelling(typed)


def _typed_name(fields: dict[str, Any] | None) -> str:
    return str((fields or {}).get("username") or (fields or {}).get("login") or "")


def _one_spelling(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def remember_browser(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Let this browser be known as one from which `user` has signed in."""
    name = _one_spelling(user.get_username())
    if not _browser(request, name):
        value = signing.dumps([name, secrets.token_hex(8)], salt=_SALT)
        response.set_cookie(
            _cookie(),
            value,
            max_age=DEVICE_SECONDS,
            secure=settings.CONSOLE_TLS,
            httponly=True,
            samesite="Lax",
        )


def _cookie() -> str:
    return "__Host-browser" if settings.CONSOLE_TLS else "browser"


def _browser(request: HttpRequest, name: str) -> str:
    """Return the identity of a browser that has signed in to the account before, "" of any other."""
    try:
        username, identity = signing.loads(
            request.COOKIES.get(_cookie(), ""), salt=_SALT, max_age=DEVICE_SECONDS
        )
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return str(identity) if name and username == name else ""


class AuditedAxesHandler(AxesDatabaseHandler):  # type: ignore[misc]  # it is published without types
    """Axes' own handler, with counts of ours, and a row in the audit log for what it hears.

    The name that was tried is written only where somebody has it: people type passwords there too.
    """

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return how many failures count against this attempt."""
        name = account_name(request, credentials)
        recent = AccessAttempt.objects.filter(
            username=name, attempt_time__gte=get_cool_off_threshold(request)
        )
        if browser := _browser(request, name):
            return _failures(recent.filter(user_agent=_MARK + browser))
        strangers = recent.exclude(user_agent__startswith=_MARK)
        here = _failures(strangers.filter(ip_address=request.axes_ip_address))  # type: ignore[attr-defined]
        if _failures(strangers) >= settings.CONSOLE_LOGIN_FAILURES_EVERYWHERE:
            return max(here, settings.AXES_FAILURE_LIMIT)
        return here

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
    ) -> None:
        if request is not None:
            browser = _browser(request, account_name(request, credentials))
            agent = str(getattr(request, "axes_user_agent", "")).removeprefix(_MARK)
            request.axes_user_agent = _MARK + browser if browser else agent  # type: ignore[attr-defined]
        super().user_login_failed(sender, credentials, request, **kwargs)
        user = User.objects.filter(username__iexact=_typed_name(credentials).strip()).first()
        locked = bool(getattr(request, "axes_locked_out", False))
        audit.log_refusal(
            user.get_username() if user else "?",
            action=Action.SIGN_IN_FAILED,
            thing=user,
            details={"locked_out": locked, "known": user is not None},
        )
        origin.current().refusal_logged = True


def _failures(attempts: QuerySet[AccessAttempt]) -> int:
    return attempts.aggregate(sum=Sum("failures_since_start"))["sum"] or 0
