"""Tokens by which programs of a job show the console which attempt they belong to, each for one purpose.

A token is the attempt's key, signed: nothing of it has to be stored, and a submission that is repeated gives
the same one.
"""

from __future__ import annotations

from enum import StrEnum

from django.core.signing import BadSignature, Signer


class Purpose(StrEnum):
    """The purpose of a token; the values are the salts of its signature."""

    ROLE_CREDENTIALS = "jobs.instance_role"
    TRACKING = "jobs.tracking"


def make_token(key: str, purpose: Purpose) -> str:
    """Return the token of the attempt with a key."""
    return Signer(salt=purpose).sign(key)


def is_token(text: str, key: str, purpose: Purpose) -> bool:
    """Tell whether a text is the token of the attempt with a key."""
    try:
        return Signer(salt=purpose).unsign(text) == key
    except BadSignature:
        return False
