"""Accounts that a source disables and enables again, and links by which somebody sets a password."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator

from quotas.accounts import sessions
from quotas.models import User


def disable(user: User, source: str) -> None:
    """`source` no longer knows the person: nothing of theirs works any more.  Repeating changes nothing."""
    if user.is_active:
        user.is_active, user.disabled_by = False, source
        user.save(update_fields=["is_active", "disabled_by"])
        sessions.end_all(user, why=f"disabled by {source}")


def enable(user: User, source: str) -> None:
    """`source` knows the person again; an account that an admin disabled stays so."""
    if not user.is_active and user.disabled_by == source:
        user.is_active, user.disabled_by = True, ""
        user.save(update_fields=["is_active", "disabled_by"])


class _BreakGlass(PasswordResetTokenGenerator):
    """Works once, as signing in changes what the token is made of, and for a few minutes."""

    key_salt = "quotas.accounts.activation.break_glass"

    def check_token(self, user: User | None, token: str | None) -> bool:
        if user is None or not token or not super().check_token(user, token):
            return False
        made = int(token.split("-")[0], 36)
        return self._num_seconds(self._now()) - made <= settings.CONSOLE_BREAK_GLASS_SECONDS


break_glass = _BreakGlass()


def may_break_glass(user: User) -> bool:
    """Whether a one-time link may be made for the person."""
    return user.is_active and user.kind == User.Kind.PERSON and (user.break_glass or user.is_superuser)
