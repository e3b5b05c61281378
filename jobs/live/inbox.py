"""Changes that one connection has still to be told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from jobs.live import sse
from jobs.live.cursor import Cursor

LEAST_S: Final = 0.5
"""Changes are told at most this often; what happens in between is gathered."""

MOST_NAMES: Final = 200
"""Whoever has more than this waiting is told that anything may have changed."""

CROWD: Final = 25
SPREAD_MS_EACH: Final = 10
SPREAD_MS_MOST: Final = 5000


def spread_ms(watchers: int) -> int:
    """Within how long the pages of so many watchers had better come back for what changed."""
    return min(SPREAD_MS_MOST, watchers * SPREAD_MS_EACH) if watchers > CROWD else 0


class Inbox:
    """Names gathered until they are taken; bounded, however slowly that is done.

    `wake` is called when there may be something to take, at the earliest `least_s` after the last time
    (LEAST_S when left out).  With `only`, other names are not heard.
    """

    def __init__(
        self, wake: Callable[[], None], only: frozenset[str] | None = None, *, least_s: float | None = None
    ) -> None:
        self._wake = wake
        self._only = only
        self._least_s = LEAST_S if least_s is None else least_s
        self._names: set[str] = set()
        self._everything = False
        self._cursor: Cursor | None = None
        self._spread_ms = 0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, names: Iterable[str], cursor: Cursor, watchers: int = 1) -> None:
        """Add names that changed.  `watchers` is the number of connections that are told."""
        heard = set(names) if self._only is None else self._only.intersection(names)
        if not heard:
            return
        self._names |= heard
        self._everything = self._everything or len(self._names) > MOST_NAMES
        self._tell(cursor, watchers)

    def add_everything(self, cursor: Cursor | None, watchers: int = 1) -> None:
        """Note that anything may have changed."""
        self._everything = True
        self._tell(cursor, watchers)

    def greet(self, cursor: Cursor) -> None:
        """Send where the stream is, without a change."""
        self._tell(cursor, 1)

    def _tell(self, cursor: Cursor | None, watchers: int) -> None:
        self._cursor = cursor or self._cursor
        self._spread_ms = spread_ms(watchers)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, self._due - loop.time()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._wake()

    async def close(self) -> None:
        """Cancel the timer; no events are taken any more."""
        if self._timer is not None:
            self._timer.cancel()

    async def take(self) -> bytes:
        """The event to send, or nothing when nothing happened or it is too soon."""
        due = self.look()
        if due is None:
            return b""
        names, identity, spread = due
        if names is None:
            return sse.event("reset", {}, identity)
        data: dict[str, object] = {"names": names}
        return sse.event("changed", data | ({"spread_ms": spread} if spread else {}), identity)

    def look(self) -> tuple[list[str] | None, str, int] | None:
        """Take what is due: the names (None for everything), the cursor, and the spread in milliseconds."""
        now = asyncio.get_running_loop().time()
        pending = self._names or self._everything or self._cursor is not None
        if self._timer is not None or not pending or now < self._due:
            return None
        due = (
            None if self._everything else sorted(self._names),
            str(self._cursor or ""),
            self._spread_ms,
        )
        self._names.clear()
        self._everything, self._cursor = False, None
        self._due = now + self._least_s
        return due
