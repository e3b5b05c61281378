"""The bus: names of changed things, published to the pages that watch.

Redis carries hints only.  Without it pages poll; only latency is lost, so a failure here is never an error of
the caller.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, TypeVar

import redis
import structlog
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)

T = TypeVar("T")

STREAM_LENGTH: Final = 2000
"""Changes that a workspace's stream keeps; a page that missed more is told to reload."""

AWAY_S: Final = 1.0
"""Seconds without a request to Redis after a failure, so that it does not slow a burst of commits."""

QUEUE: Final = "queue"
"""The name that is published when waiting jobs move up in a queue."""

_away_until = 0.0


@lru_cache(maxsize=1)
def client() -> redis.Redis:
    """Return this process's Redis client, with short time limits and no retries."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.25, decode_responses=True
    )


def stream_of(workspace_id: int) -> str:
    """Return the Redis key of a workspace's stream of changes."""
    return f"changes:{workspace_id}"


def is_reachable() -> bool:
    """Tell whether Redis may be asked now: not within `AWAY_S` after a failure."""
    return time.monotonic() >= _away_until


def note_failure(error: Exception) -> None:
    """Remember that Redis is away."""
    global _away_until  # noqa: PLW0603 one clock for the process is the point
    _away_until = time.monotonic() + AWAY_S
    log.warning("redis_away", error=str(error))


def attempt(work: Callable[[redis.Redis], T]) -> T | None:
    """Return what `work` does with Redis; None while Redis or the broker is away."""
    if not is_reachable():
        return None
    try:
        return work(client())
    except (redis.RedisError, OperationalError, OSError) as error:
        note_failure(error)
        return None


def publish(workspace_id: int, names: Iterable[str]) -> None:
    """Tell the watchers of a workspace now that `names` changed."""
    fields: dict[Any, Any] = {"names": json.dumps(sorted(set(names)))}
    stream = stream_of(workspace_id)
    attempt(lambda redis: redis.xadd(stream, fields, maxlen=STREAM_LENGTH, approximate=True))


def publish_on_commit(workspace_id: int, *names: str) -> None:
    """`publish` once the current transaction has committed."""
    transaction.on_commit(lambda: publish(workspace_id, names))


def job_name(public_id: str) -> str:
    """Return the name that is published for changes of a job."""
    return f"job:{public_id}"


def notifications_name(person_id: int) -> str:
    """Return the name that is published for a person's new notifications."""
    return f"notices:{person_id}"
