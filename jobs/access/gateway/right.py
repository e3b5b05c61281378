"""A right that is looked at again while something stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from django.db import DatabaseError

from jobs.access.gateway.visits import Standing

LONGEST_TRUST_SECONDS: Final = 60.0
"""Nobody stays longer on a right that could not be looked at again (DESIGN section 8)."""


class Right:
    """That the same person may still pass to the same place as `standing` said; `now` is what was said last.

    While the database is away nobody is thrown out before `LONGEST_TRUST_SECONDS`.
    """

    def __init__(self, standing: Standing, look: Callable[[], Awaitable[Standing]]) -> None:
        self.now = standing
        self._granted = standing
        self._look = look
        self._clock = asyncio.get_running_loop().time
        self._known = self._clock()

    async def holds(self) -> bool:
        """Look again."""
        try:
            self.now = await self._look()
        except DatabaseError:
            return self._clock() - self._known < LONGEST_TRUST_SECONDS
        self._known = self._clock()
        return self.now == self._granted
