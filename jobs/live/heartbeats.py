"""Heartbeats of the parts that answer no request, and their known troubles; in Redis, for the health check.

A heartbeat expires: a part that was stopped or hangs sends none.  Without Redis nothing is known, which the
health check reports for Redis itself.
"""

from __future__ import annotations

from typing import Final

from jobs.live import bus

SIGN_SECONDS: Final = 30
"""Lifetime of a sign; each part gives one far more often."""

TROUBLE_SECONDS: Final = 600
"""Lifetime of a trouble that does not occur again."""


def beat(part: str) -> None:
    """Send a heartbeat of `part`."""
    bus.attempt(lambda redis: redis.set(f"vitals:alive:{part}", "1", ex=SIGN_SECONDS))


def is_alive(part: str) -> bool:
    """Return whether `part` gave a sign lately.  Raises RedisError."""
    return bool(bus.client().exists(f"vitals:alive:{part}"))


def set_trouble(part: str, text: str) -> None:
    """Remember that `part` does not work, in words for an admin."""
    bus.attempt(lambda redis: redis.set(f"vitals:trouble:{part}", text, ex=TROUBLE_SECONDS))


def clear_trouble(part: str) -> None:
    """Forget the trouble of `part`: it works."""
    bus.attempt(lambda redis: redis.delete(f"vitals:trouble:{part}"))


def trouble_of(part: str) -> str:
    """Return the trouble of `part`, "" if none.  Raises RedisError."""
    found = bus.client().get(f"vitals:trouble:{part}")
    return str(found or "")
