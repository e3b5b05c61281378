"""Outcome of one try to send a message."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from jobs.outbound import egress

BUSY: Final = frozenset({408, 425, 429, 503})
LONGEST_PAUSE_S: Final = 3600


@dataclass(frozen=True, slots=True)
class Outcome:
    """Delivered if `error` is empty; else a code of `jobs.messages.deliveries`, and whether to try again."""

    code: int | None = None
    error: str = ""
    detail: str = ""
    again: bool = False
    pause_s: int = 0


def of_answer(answer: egress.Answer) -> Outcome:
    """Return the outcome that an HTTP status means."""
    status = answer.status
    if 200 <= status < 300:
        return Outcome(status)
    if 300 <= status < 400:
        return Outcome(status, "redirect")
    if status in BUSY:
        return Outcome(status, "busy", again=True, pause_s=_pause(answer))
    return Outcome(status, "trouble" if status >= 500 else "rejected", _words(status), again=status >= 500)


def _words(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _pause(answer: egress.Answer) -> int:
    text = answer.headers.get("retry-after", "").partition(".")[0]
    return min(int(text), LONGEST_PAUSE_S) if text.isascii() and text.isdecimal() else 0
