"""Second factors of accounts: who needs one, and who has one."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from django.conf import settings

from quotas.models import User


def needs(user: User) -> bool:
    """Tell whether the settings require one of the person."""
    if settings.CONSOLE_SECOND_FACTOR == "everybody":
        return True
    return bool(settings.CONSOLE_SECOND_FACTOR == "admins" and (user.is_staff or user.is_superuser))


def has(user: User) -> bool:
    """Tell whether the person has one; recovery codes alone are none."""
    return Authenticator.objects.filter(user=user).exclude(type=Authenticator.Type.RECOVERY_CODES).exists()
