"""The console's own passwords, and whose are accepted."""

from __future__ import annotations

from allauth.account.auth_backends import AuthenticationBackend
from allauth.core import context
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser

from quotas.models import User


class DirectoryAway(Exception):  # it is what happened
    """The directory does not answer: whether a password is right is not known."""


def passwords_are_for_everybody() -> bool:
    """Whether the console's own passwords are a way in for others than break-glass accounts."""
    return bool(settings.CONSOLE_LOCAL_SIGN_IN == "everybody")


class LocalBackend(AuthenticationBackend):
    """Sign-in by a local password, where CONSOLE_LOCAL_SIGN_IN allows it; never for service accounts.

    Sessions of people who came by a provider are this backend's too, so what is asked of every session
    (`user_can_authenticate`) is asked apart from what is asked of a password.
    """

    def user_can_authenticate(self, user: AbstractBaseUser | AnonymousUser | None) -> bool:
        return isinstance(user, User) and user.is_active and user.kind == User.Kind.PERSON

    def _check_password(self, user: AbstractBaseUser | None, password: str) -> AbstractBaseUser | None:
        found = super()._check_password(user, password)
        return found if found is not None and _admits(found) else None


def _admits(user: AbstractBaseUser) -> bool:
    """Return whether the account may sign in, or confirm itself while signed in."""
    if passwords_are_for_everybody() or (isinstance(user, User) and user.break_glass):
        return True
    request = context.request
    return bool(request and request.user.is_authenticated and request.user.pk == user.pk)
