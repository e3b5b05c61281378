"""Encryption of what must be given back as it was: secrets and access keys.

MultiFernet with the key ring of `settings.CONSOLE_FERNET_KEYS` (newest first), which lies outside the
database, so that a copy of the database alone tells nothing.
"""

from __future__ import annotations

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class Unreadable(Exception):
    """The key that encrypted this value is no longer in the key ring."""


@lru_cache(maxsize=4)
def _ring(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def encrypt(value: str) -> str:
    """`value` under the newest key."""
    return _ring(tuple(settings.CONSOLE_FERNET_KEYS)).encrypt(value.encode()).decode()


def decrypt(token: str) -> str:
    """The value that `encrypt` was given; raises Unreadable when its key is gone."""
    try:
        return _ring(tuple(settings.CONSOLE_FERNET_KEYS)).decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise Unreadable from error


def rotate(token: str) -> str:
    """Return the same value under the newest key: the token itself if it has that key.  Raises Unreadable."""
    keys = tuple(settings.CONSOLE_FERNET_KEYS)
    try:
        _ring(keys[:1]).decrypt(token.encode())
    except InvalidToken:
        pass
    else:
        return token
    try:
        return _ring(keys).rotate(token.encode()).decode()
    except InvalidToken as error:
        raise Unreadable from error
