"""Signed addresses that stand for one caller and one thing, for clients that fetch them without a token."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.core import signing

from jobs.api.vendors.operations import Call
from quotas.accounts import tokens
from quotas.models import AccessToken, User

LIFETIME: Final = timedelta(minutes=5)
"""OpenPAI's own addresses of logs expire as fast."""


def issue(call: Call, purpose: str, thing: list[Any]) -> str:
    """Return a ticket of the caller for a thing.  It ends with the caller's token."""
    token = getattr(call.request, "auth", None)
    assert isinstance(token, AccessToken)
    return signing.dumps([token.pk, thing], salt=_salt(purpose))


def read(ticket: str, purpose: str) -> tuple[User, list[Any]] | None:
    """Return whose ticket it is and for which thing; None for one that is wrong, expired or revoked."""
    try:
        token, thing = signing.loads(ticket, salt=_salt(purpose), max_age=LIFETIME)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    user = tokens.holder(token)
    return None if user is None else (user, thing)


def _salt(purpose: str) -> str:
    return f"jobs.api.vendors.openpai.tickets.{purpose}"
