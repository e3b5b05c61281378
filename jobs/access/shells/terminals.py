"""Terminals: shells that stay while browsers come and go, shown to as many as may look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from django.conf import settings

from jobs.access.entries import Shut
from jobs.access.shells.house import House
from jobs.access.shells.inside import Inside
from jobs.access.shells.scrollback import Scrollback
from jobs.backends.sessions import Kind, Session, Size, Terminal, Wanted
from jobs.models import Entry

READ_BYTES: Final = 64 * 1024
AHEAD_BYTES: Final = 256 * 1024
"""A shell writes so far ahead of whoever looks; then it waits, as at a slow terminal."""

UNSEEN_SECONDS: Final = 0.05
"""Between reads while nobody looks: what is never shown need not be fast."""

MOST_VIEWERS: Final = 20


class View:
    """One who looks: everything before `place` has been sent."""

    def __init__(self, place: int) -> None:
        self.place = place


class Shown:
    """One terminal."""

    def __init__(self, inside: Inside, session: Session) -> None:
        self._inside, self._session = inside, session
        self._past = Scrollback()
        self._views: set[View] = set()
        self._news = asyncio.Event()
        self._moved = asyncio.Event()
        self.over = False
        self._keeping: asyncio.TimerHandle | None = None
        self._reading = asyncio.ensure_future(self._read())
        self._ending: asyncio.Future[None] | None = None

    async def write(self, data: bytes) -> None:
        """Type."""
        with suppress(BrokenPipeError):
            await self._session.write(data)

    def resize(self, size: Size) -> None:
        """Whoever types decides the size."""
        self._session.resize(size)

    @property
    def why(self) -> Entry.Why:
        """Why it is over."""
        return self._inside.ended.result() if self._inside.ended.done() else Entry.Why.LEFT

    @asynccontextmanager
    async def looked_at(self, place: int) -> AsyncIterator[View]:
        """Somebody looks, who has seen everything before `place`.  Raises Shut."""
        if len(self._views) >= MOST_VIEWERS:
            raise Shut("full_person")
        here = place if self._past.start <= place <= self._past.end else self._past.start
        view = View(here)
        self._views.add(view)
        if self._keeping:
            self._keeping.cancel()
        try:
            yield view
        finally:
            self._views.discard(view)
            self._moved.set()
            if not self._views and not self.over:
                self._keep_a_while()

    async def more(self, view: View) -> tuple[bytes, bool]:
        """What `view` has not seen yet, and whether something before it was skipped; b"" at the end."""
        while view.place == self._past.end and not self.over:
            self._news.clear()
            await self._news.wait()
        skipped = view.place < self._past.start
        view.place = max(view.place, self._past.start)
        return self._past.since(view.place, READ_BYTES), skipped

    def seen(self, view: View, count: int) -> None:
        """`count` more bytes have been sent."""
        view.place += count
        self._moved.set()

    def _keep_a_while(self) -> None:
        loop = asyncio.get_running_loop()
        self._keeping = loop.call_later(settings.CONSOLE_TERMINAL_KEEP_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._ending = asyncio.ensure_future(self._inside.end(Entry.Why.LEFT))

    async def _read(self) -> None:
        while data := await self._session.read(READ_BYTES):
            self._past.add(data)
            self._news.set()
            await self._wait_for_views()
        self.over = True
        self._news.set()
        await self._inside.end(Entry.Why.LEFT)

    async def _wait_for_views(self) -> None:
        """Until the foremost of those who look is near the end; then the others skip."""
        if not self._views:
            await asyncio.sleep(UNSEEN_SECONDS)
        while self._views and self._past.end - max(view.place for view in self._views) > AHEAD_BYTES:
            self._moved.clear()
            await self._moved.wait()


class Terminals:
    """Those of this process, by their entries' keys."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._shown: dict[str, asyncio.Task[Shown]] = {}

    async def shown(self, key: str, size: Size) -> Shown:
        """The terminal of that entry, begun by whoever asks first.  Raises Shut, and DatabaseError."""
        task = self._shown.get(key)
        if task is None:
            task = asyncio.ensure_future(self._begin(key, size))
            self._shown[key] = task
        try:
            return await asyncio.shield(task)
        except Exception:
            self._shown.pop(key, None)
            raise

    async def _begin(self, key: str, size: Size) -> Shown:
        inside = await self._house.take_up(key)
        inside.ended.add_done_callback(lambda _why: self._shown.pop(key, None))
        wanted = Wanted(Kind.SHELL, terminal=Terminal(size=size), env={"COLORTERM": "truecolor"})
        try:
            session = await inside.run(wanted)
        except Shut:
            await inside.end(Entry.Why.JOB_ENDED)
            raise
        return Shown(inside, session)
