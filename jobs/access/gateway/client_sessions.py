"""Client sessions of aiohttp, opened at their first use."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp


class LazySession:
    """A client session that `make` opens in the loop that needs it first."""

    def __init__(self, make: Callable[[], aiohttp.ClientSession]) -> None:
        self._make = make
        self._session: aiohttp.ClientSession | None = None

    def get(self) -> aiohttp.ClientSession:
        """Return the session; open it if there is none."""
        if self._session is None:
            self._session = self._make()
        return self._session

    async def close(self) -> None:
        """Close its connections; the next use opens a new session."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
