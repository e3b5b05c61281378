"""Terminals: shells that stay while browsers come and go, shown to as many as may look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from django.conf import settings

from jobs.access.sessions import EntryRefused
from jobs.access.terminal_gateway.open_sessions import OpenSessions
from jobs.access.terminal_gateway.session import JobSession
from jobs.backends.sessions import Session, SessionKind, SessionRequest, Size, Terminal
from jobs.models import AccessSession

READ_BYTES: Final = 64 * 1024
AHEAD_BYTES: Final = 256 * 1024
"""A shell writes so far ahead of whoever looks; then it waits, as at a slow terminal."""

UNSEEN_SECONDS: Final = 0.05
"""Between reads while nobody looks: what is never shown need not be fast."""

MOST_VIEWERS: Final = 20
SCROLLBACK_BYTES: Final = 512 * 1024


class Scrollback:
    """The last bytes; `start` and `end` count all bytes before their first, and in all."""

    def __init__(self, most: int = SCROLLBACK_BYTES) -> None:
        self._most = most
        self._data = bytearray()
        self.start = 0

    @property
    def end(self) -> int:
        """How many bytes there ever were."""
        return self.start + len(self._data)

    def add(self, data: bytes) -> None:
        """Add output; the oldest is dropped where there is too much, to the end of a line if there is one."""
        self._data += data
        surplus = len(self._data) - self._most
        if surplus > 0:
            line = self._data.find(b"\n", surplus, surplus + 4096)
            surplus = surplus if line < 0 else line + 1
            del self._data[:surplus]
            self.start += surplus

    def since(self, place: int, limit: int) -> bytes:
        """Return at most `limit` bytes from `place`, which must not lie before `start`."""
        at = place - self.start
        return bytes(self._data[at : at + limit])


class View:
    """A viewer; everything before `place` has been sent."""

    def __init__(self, place: int) -> None:
        self.place = place


class SharedTerminal:
    """A terminal that several may watch."""

    def __init__(self, job_session: JobSession, session: Session) -> None:
        self._job_session, self._session = job_session, session
        self._past = Scrollback()
        self._views: set[View] = set()
        self._news = asyncio.Event()
        self._moved = asyncio.Event()
        self.over = False
        self._keep_timer: asyncio.TimerHandle | None = None
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
    def why(self) -> AccessSession.Why:
        """Why it is over."""
        return self._job_session.ended.result() if self._job_session.ended.done() else AccessSession.Why.LEFT

    @asynccontextmanager
    async def add_viewer(self, place: int) -> AsyncIterator[View]:
        """Add a viewer, who has seen everything before `place`.  Raises Shut."""
        if len(self._views) >= MOST_VIEWERS:
            raise EntryRefused("full_person")
        here = place if self._past.start <= place <= self._past.end else self._past.start
        view = View(here)
        self._views.add(view)
        if self._keep_timer:
            self._keep_timer.cancel()
        try:
            yield view
        finally:
            self._views.discard(view)
            self._moved.set()
            if not self._views and not self.over:
                self._start_keep_timer()

    async def more(self, view: View) -> tuple[bytes, bool]:
        """Return the next bytes for `view`, and whether some before them were skipped; b"" at the end."""
        while view.place == self._past.end and not self.over:
            self._news.clear()
            await self._news.wait()
        skipped = view.place < self._past.start
        view.place = max(view.place, self._past.start)
        return self._past.since(view.place, READ_BYTES), skipped

    def mark_seen(self, view: View, count: int) -> None:
        """`count` more bytes have been sent."""
        view.place += count
        self._moved.set()

    def _start_keep_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._keep_timer = loop.call_later(settings.CONSOLE_TERMINAL_KEEP_SECONDS, self._end)

    def _end(self) -> None:
        self._ending = asyncio.ensure_future(self._job_session.end(AccessSession.Why.LEFT))

    async def _read(self) -> None:
        while data := await self._session.read(READ_BYTES):
            self._past.add(data)
            self._news.set()
            await self._wait_for_views()
        self.over = True
        self._news.set()
        await self._job_session.end(AccessSession.Why.LEFT)

    async def _wait_for_views(self) -> None:
        """Until the foremost of those who look is near the end; then the others skip."""
        if not self._views:
            await asyncio.sleep(UNSEEN_SECONDS)
        while self._views and self._past.end - max(view.place for view in self._views) > AHEAD_BYTES:
            self._moved.clear()
            await self._moved.wait()


class Terminals:
    """The terminals of this process, by their sessions' keys."""

    def __init__(self, sessions: OpenSessions) -> None:
        self._sessions = sessions
        self._shown: dict[str, asyncio.Task[SharedTerminal]] = {}

    async def find_or_begin(self, key: str, size: Size) -> SharedTerminal:
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

    async def _begin(self, key: str, size: Size) -> SharedTerminal:
        job_session = await self._sessions.attach(key)
        job_session.ended.add_done_callback(lambda _why: self._shown.pop(key, None))
        wanted = SessionRequest(
            SessionKind.SHELL, terminal=Terminal(size=size), env={"COLORTERM": "truecolor"}
        )
        try:
            session = await job_session.run(wanted)
        except EntryRefused:
            await job_session.end(AccessSession.Why.JOB_ENDED)
            raise
        return SharedTerminal(job_session, session)
