"""One person's stream: what its sources say, a sign of life, and now and then the question of rights."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from jobs.live import sse
from jobs.live.changes import changes
from jobs.live.cursor import Cursor
from jobs.live.inbox import Inbox
from jobs.live.seats import Seat
from jobs.live.threads import aside, leave_request_thread

PING_S: Final = 15.0
LOOK_AGAIN_S: Final = (25.0, 45.0)
"""Rights are looked at again after a time between these, so that not all streams ask at once.  Whoever has
lost them is cut off within the minute that DESIGN section 8 allows."""

Look = Callable[[], frozenset[int] | None]
"""The workspaces whose changes the person may hear of now; None when the stream has to end.  Blocking."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Who watches, in which workspaces, and how to find out whether they still may."""

    user_id: int
    workspaces: frozenset[int]
    look: Look


class Source(Protocol):
    """Something that a stream carries."""

    async def take(self) -> bytes:
        """What is to be sent now, whole events; empty when there is nothing.

        It wakes the connection itself when there is more.
        """

    async def close(self) -> None:
        """Nobody will take anything any more."""


class Alarm:
    """Wakes somebody at a time at the latest.  It may ring too early or in vain, and then is wound again."""

    def __init__(self, wake: asyncio.Event) -> None:
        self._wake = wake
        self._at: float | None = None
        self._handle: asyncio.Handle | None = None

    def ring_by(self, at: float) -> None:
        """Ring at `at` (the loop's clock) or before; an alarm that is wound already costs nothing."""
        if self._at is None or at < self._at:
            self.cancel()
            self._at = at
            self._handle = asyncio.get_running_loop().call_at(at, self._ring)

    def _ring(self) -> None:
        self._at = None
        self._wake.set()

    def cancel(self) -> None:
        """Don't ring."""
        if self._handle is not None:
            self._handle.cancel()


class Connection:
    """The loop of one stream.

    `inbox` hears the changes of the workspaces that `look` names.  `over` ends the stream once everything
    was sent; without it the stream goes on until the person goes or their rights do.
    """

    def __init__(self, wake: asyncio.Event, inbox: Inbox, sources: Sequence[Source], visit: Visit) -> None:
        self._wake = wake
        self._inbox = inbox
        self._sources = sources
        self._look = visit.look
        self._workspaces = visit.workspaces

    async def events(self, since: Cursor | None, over: Callable[[], bool]) -> AsyncIterator[bytes]:
        """The bytes of the stream, with the changes from `since` on, until `over` answers true."""
        await leave_request_thread()
        try:
            await changes().join(self._inbox, self._workspaces, since)
            async for piece in self._pieces(over):
                yield piece
        finally:
            changes().leave(self._inbox)
            for source in (self._inbox, *self._sources):
                await source.close()

    async def _pieces(self, over: Callable[[], bool]) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        ping_at, look_at = loop.time(), loop.time() + _look_again_in()
        alarm = Alarm(self._wake)
        try:
            while True:
                self._wake.clear()
                told = b"".join([await source.take() for source in self._sources])
                if told or loop.time() >= ping_at:
                    yield told or sse.PING
                    ping_at = loop.time() + PING_S
                if over():
                    return
                if loop.time() >= look_at:
                    if not await self._may_stay():
                        return
                    look_at = loop.time() + _look_again_in()
                alarm.ring_by(min(ping_at, look_at))
                await self._wake.wait()
        finally:
            alarm.cancel()

    async def _may_stay(self) -> bool:
        """Ask for the rights again; the workspaces may be others than before."""
        found = await aside(self._look)
        if found is None:
            return False
        if found != self._workspaces:
            changes().leave(self._inbox)
            self._workspaces = found
            await changes().join(self._inbox, found, None)
            self._inbox.put_everything(None)
        return True


def _look_again_in() -> float:
    return random.uniform(*LOOK_AGAIN_S)  # noqa: S311  # a spread, not a secret


def open_stream(
    visit: Visit,
    sources: Callable[[Inbox, asyncio.Event], Sequence[Source]] = lambda inbox, _wake: [inbox],
    *,
    only: frozenset[str] | None = None,
    since: Cursor | None = None,
    over: Callable[[], bool] = lambda: False,
) -> sse.EventStream:
    """A response that tells the visitor what the sources have to say.  Raises `seats.Full`."""
    seat = Seat(visit.user_id)
    wake = asyncio.Event()
    inbox = Inbox(wake.set, only)
    connection = Connection(wake, inbox, sources(inbox, wake), visit)
    return sse.EventStream(connection.events(since, over), seat.leave)
