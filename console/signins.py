"""Failed sign-ins, told to the audit trail by the library that counts them."""

from __future__ import annotations

from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from django.http import HttpRequest

from quotas import audit, origin
from quotas.models import Action, User


class Told(AxesDatabaseHandler):  # type: ignore[misc]  # it is published without types
    """Axes' own handler, and a row in the trail for what it hears.

    The name that was tried is written only where somebody has it: people type passwords there too.
    """

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
    ) -> None:
        super().user_login_failed(sender, credentials, request, **kwargs)
        tried = str(credentials.get("username") or credentials.get("login") or "")
        whom = User.objects.filter(username=tried).first()
        locked = bool(getattr(request, "axes_locked_out", False))
        audit.denied(
            whom.get_username() if whom else "?",
            action=Action.SIGN_IN_FAILED,
            thing=whom,
            details={"locked_out": locked, "known": whom is not None},
        )
        origin.current().told = True
