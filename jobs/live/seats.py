"""How many streams one person may hold open in this process."""

from __future__ import annotations

from collections import Counter
from typing import Final

from django.conf import settings

RETRY_AFTER_S: Final = 10


_taken: Counter[int] = Counter()


class Full(Exception):
    """The person has as many streams open as one may."""


class Seat:
    """One stream's place; leaving twice is leaving once."""

    __slots__ = ("_user_id",)

    def __init__(self, user_id: int) -> None:
        self._user_id: int | None = None
        if _taken[user_id] >= settings.CONSOLE_STREAMS_PER_PERSON:
            raise Full
        _taken[user_id] += 1
        self._user_id = user_id

    def leave(self) -> None:
        """Give the place to whoever comes next."""
        user_id, self._user_id = self._user_id, None
        if user_id is None:
            return
        _taken[user_id] -= 1
        if not _taken[user_id]:
            del _taken[user_id]

    __del__ = leave  # a response that was never sent is never closed


def taken() -> int:
    """How many streams this process has open."""
    return _taken.total()
