"""What couriers bring from nodes that share no folder with the console, from HTTP to the backend.

No row of the database is looked at: what they bring is taken while the database is away, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings

from jobs import logs
from jobs.backends.slurm.relay import delivered

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer: JSON or bytes, or a status that says why there is none."""

    status: int
    value: dict[str, Any] | None = None
    data: bytes = b""


def received(key: str, token: str, body: bytes) -> Answered:
    """What a courier brings, put in its place; and what it takes back."""
    return _answered(key, lambda root: Answered(200, delivered.receive(root, key, token, body)))


def offered(key: str, token: str, name: str, at: int) -> Answered:
    """A piece of a file that a replica needs."""

    def asked(root: Path) -> Answered:
        data = delivered.offered(root, key, token, name, at)
        if data is None:
            return Answered(HTTPStatus.NOT_FOUND)
        return Answered(200, data=data) if data else Answered(HTTPStatus.NO_CONTENT)

    return _answered(key, asked)


def _answered(key: str, what: Callable[[Path], Answered]) -> Answered:
    try:
        return what(_root())
    except delivered.NotKnown:
        return Answered(HTTPStatus.UNAUTHORIZED)
    except delivered.Over:
        return Answered(HTTPStatus.GONE)
    except delivered.TooOften:
        return Answered(HTTPStatus.TOO_MANY_REQUESTS)
    except delivered.Nonsense:
        return Answered(HTTPStatus.BAD_REQUEST)
    except (delivered.Full, OSError) as error:
        log.warning("courier_sent_back", key=key, error=repr(error))
        return Answered(HTTPStatus.SERVICE_UNAVAILABLE)


def _root() -> Path:
    """Where the jobs' files of Slurm clusters lie."""
    return Path(settings.CONSOLE_SLURM_FOLDER or logs.jobs_root())
