"""Requests of node relays, from HTTP to relay ingest.

The database is not used: relays are served while it is away, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import structlog
from django.conf import settings

from jobs.backends.remote import relay_ingest
from jobs.logs import log_store

log = structlog.get_logger(__name__)

_STATUSES: Final[dict[type[Exception], HTTPStatus]] = {
    relay_ingest.UnknownAttempt: HTTPStatus.UNAUTHORIZED,
    relay_ingest.NotAdmitted: HTTPStatus.SERVICE_UNAVAILABLE,
    relay_ingest.AttemptOver: HTTPStatus.GONE,
    relay_ingest.RateLimited: HTTPStatus.TOO_MANY_REQUESTS,
    relay_ingest.InvalidMessage: HTTPStatus.BAD_REQUEST,
}


@dataclass(frozen=True, slots=True)
class RelayAnswer:
    """An answer of JSON or bytes, or a status that tells why there is none."""

    status: int
    value: dict[str, Any] | None = None
    data: bytes = b""


def receive(key: str, token: str, body: bytes) -> RelayAnswer:
    """Store what a node relay sends, and return the reply for it."""
    return _answer(key, lambda root: RelayAnswer(200, relay_ingest.receive(root, key, token, body)))


def read_input(key: str, token: str, name: str, at: int) -> RelayAnswer:
    """Return a chunk of a file that a replica needs."""

    def read(root: Path) -> RelayAnswer:
        data = relay_ingest.read_input(root, key, token, name, at)
        if data is None:
            return RelayAnswer(HTTPStatus.NOT_FOUND)
        return RelayAnswer(200, data=data) if data else RelayAnswer(HTTPStatus.NO_CONTENT)

    return _answer(key, read)


def _answer(key: str, action: Callable[[Path], RelayAnswer]) -> RelayAnswer:
    try:
        roots = [Path(each) for each in (settings.CONSOLE_SLURM_FOLDER, log_store.jobs_root()) if each]
        return action(relay_ingest.find_root(roots, key))
    except tuple(_STATUSES) as error:
        return RelayAnswer(_STATUSES[type(error)])
    except (relay_ingest.NoSpace, OSError) as error:
        log.warning("relay_request_failed", key=key, error=repr(error))
        return RelayAnswer(HTTPStatus.SERVICE_UNAVAILABLE)
