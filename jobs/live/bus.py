"""The bus: names of what changed, told to whoever watches.

Redis carries hints only.  Without it pages poll; nothing is lost but latency, so a failure here is
never an error of the caller.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import redis
import structlog
from django.conf import settings
from django.db import transaction

log = structlog.get_logger(__name__)

STREAM_LENGTH: Final = 2000
"""How many changes a workspace's stream keeps; a page that slept longer is told to start afresh."""

AWAY_S: Final = 1.0
"""After a failure Redis is left alone this long, so that a burst of commits is not slowed by it."""

QUEUE: Final = "queue"
"""The name under which a queue's moving up travels to everybody who waits in it."""

_away_until = 0.0


@lru_cache(maxsize=1)
def client() -> redis.Redis:
    """This process's Redis client, with short time limits and no retries."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.25, decode_responses=True
    )


def stream_of(workspace_id: int) -> str:
    """The Redis key of a workspace's stream of changes."""
    return f"changes:{workspace_id}"


def reachable() -> bool:
    """Whether it is worth asking Redis now."""
    return time.monotonic() >= _away_until


def told_off(error: Exception) -> None:
    """Remember that Redis is away."""
    global _away_until  # noqa: PLW0603 one clock for the process is the point
    _away_until = time.monotonic() + AWAY_S
    log.warning("redis_away", error=str(error))


def publish(workspace_id: int, names: Iterable[str]) -> None:
    """Tell watchers of the workspace that `names` changed, now."""
    if not reachable():
        return
    try:
        client().xadd(
            stream_of(workspace_id),
            {"names": json.dumps(sorted(set(names)))},
            maxlen=STREAM_LENGTH,
            approximate=True,
        )
    except (redis.RedisError, OSError) as error:
        told_off(error)


def publish_on_commit(workspace_id: int, *names: str) -> None:
    """`publish` once the current transaction has committed."""
    transaction.on_commit(lambda: publish(workspace_id, names))


def job_name(public_id: str) -> str:
    """The name under which changes of a job travel."""
    return f"job:{public_id}"


def notices_name(person_id: int) -> str:
    """The name under which a person's new notices travel."""
    return f"notices:{person_id}"
