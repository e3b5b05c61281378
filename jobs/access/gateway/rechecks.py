"""Rights that are checked again while a connection stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from django.conf import settings
from django.db import DatabaseError

T = TypeVar("T")

LONGEST_TRUST_SECONDS: Final = 60.0
"""A connection whose right can't be checked again, as the database is away, ends after this time."""


def interval() -> float:
    """Return the seconds between two checks."""
    return min(float(settings.CONSOLE_GATEWAY_RECHECK_SECONDS), LONGEST_TRUST_SECONDS / 2)


class RecheckedRight(Generic[T]):
    """A right that lasts while `look` answers what it answered first; `now` is its latest answer."""

    def __init__(self, granted: T, look: Callable[[], Awaitable[T]]) -> None:
        self.now = granted
        self._granted = granted
        self._look = look
        self._clock = asyncio.get_running_loop().time
        self._checked_at = self._clock()

    async def holds(self) -> bool:
        """Check again."""
        try:
            self.now = await self._look()
        except DatabaseError:
            return self._clock() - self._checked_at < LONGEST_TRUST_SECONDS
        self._checked_at = self._clock()
        return self.now == self._granted

    async def until_first(self, work: list[Coroutine[Any, Any, None]]) -> asyncio.Task[None] | None:
        """Run all of `work` until the first of it is done or the right is lost, and end the rest.

        Return the one that was done; None when the right was lost.
        """
        tasks = [asyncio.ensure_future(each) for each in work]
        try:
            while True:
                done, _running = await asyncio.wait(
                    tasks, timeout=interval(), return_when=asyncio.FIRST_COMPLETED
                )
                if done:
                    return next(task for task in tasks if task in done)
                if not await self.holds():
                    return None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
