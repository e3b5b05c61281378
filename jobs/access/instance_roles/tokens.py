"""Tokens that a job's programs show for the credentials of its role, by AWS's convention.

A token is the attempt's key, signed: nothing of it has to be stored, and a submission that is repeated gives
the same one.
"""

from __future__ import annotations

from typing import Final

from django.core.signing import BadSignature, Signer

_SALT: Final = "jobs.instance_role"


def make_token(key: str) -> str:
    """Return the token of the attempt with a key."""
    return Signer(salt=_SALT).sign(key)


def is_token(text: str, key: str) -> bool:
    """Tell whether a text is the token of the attempt with a key."""
    try:
        return Signer(salt=_SALT).unsign(text) == key
    except BadSignature:
        return False
