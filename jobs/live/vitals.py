"""Signs of life of the parts that answer no request, and troubles that somebody met; in Redis, for health.

A sign fades by itself: a part that was stopped or hangs gives none.  Without Redis nothing is known, which
health says of Redis.
"""

from __future__ import annotations

from typing import Final

import redis

from jobs.live import bus

SIGN_SECONDS: Final = 30
"""A part that gave no sign for so long is not well; each gives one far more often."""

TROUBLE_SECONDS: Final = 600
"""A trouble that nobody has met again for so long is forgotten."""


def alive(part: str) -> None:
    """Give a sign of life of `part`."""
    _put(f"vitals:alive:{part}", "1", SIGN_SECONDS)


def is_alive(part: str) -> bool:
    """Return whether `part` gave a sign lately.  Raises RedisError."""
    return bool(bus.client().exists(f"vitals:alive:{part}"))


def trouble(part: str, text: str) -> None:
    """Remember that `part` does not work, in words for an admin."""
    _put(f"vitals:trouble:{part}", text, TROUBLE_SECONDS)


def well(part: str) -> None:
    """Forget the trouble of `part`: it works."""
    if bus.reachable():
        try:
            bus.client().delete(f"vitals:trouble:{part}")
        except (redis.RedisError, OSError) as error:
            bus.told_off(error)


def trouble_of(part: str) -> str:
    """Return the trouble of `part`, "" if none.  Raises RedisError."""
    found = bus.client().get(f"vitals:trouble:{part}")
    return str(found or "")


def _put(key: str, text: str, seconds: int) -> None:
    if bus.reachable():
        try:
            bus.client().set(key, text, ex=seconds)
        except (redis.RedisError, OSError) as error:
            bus.told_off(error)
