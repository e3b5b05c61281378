"""One person inside one replica: everything they run there, and its end."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from jobs.access import entries
from jobs.access.entries import Shut
from jobs.backends.base import Handle, TaskRef
from jobs.backends.sessions import Barrier, Enterable, NoEntry, Session, Wanted
from jobs.live.threads import aside
from jobs.models import Entry

log = structlog.get_logger(__name__)

MOST_SESSIONS: Final = 64
"""Channels of one SSH connection, those included that have left something in the background."""


class Inside:
    """An entry that is open; `ended` is done once it is over, and says why."""

    def __init__(self, entry: Entry, backend: Enterable, handle: Handle, task: TaskRef) -> None:
        self.pk: Final = entry.pk
        self._backend, self._handle, self._task = backend, handle, task
        self._sessions: set[Session] = set()
        self._beginning = 0
        self._watching: set[asyncio.Task[None]] = set()
        self.ended: asyncio.Future[Entry.Why] = asyncio.get_running_loop().create_future()

    async def run(self, wanted: Wanted) -> Session:
        """Run something in the replica, until `leave` or the entry's end.  Raises Shut."""
        if self.ended.done():
            raise Shut("ended")
        if len(self._sessions) + self._beginning >= MOST_SESSIONS:
            raise Shut("full_person")
        self._beginning += 1
        try:
            session = await self._backend.exec(self._handle, self._task, wanted)
        except NoEntry as error:
            raise _shut(error) from error
        finally:
            self._beginning -= 1
        if self.ended.done():  # meanwhile
            await session.close()
            raise Shut("ended")
        self._sessions.add(session)
        return session

    def leave(self, session: Session) -> None:
        """Nobody reads it any more: forget it once its background has ended too."""
        watching = asyncio.ensure_future(self._bury(session))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)

    async def _bury(self, session: Session) -> None:
        await session.left()
        await session.close()
        self._sessions.discard(session)

    async def reach(self, host: str, port: int) -> tuple[str, int]:
        """Where to connect to for what the replica serves at `host`:`port`.  Raises Shut."""
        if self.ended.done():
            raise Shut("ended")
        try:
            return await self._backend.reach(self._handle, self._task, host, port)
        except NoEntry as error:
            raise _shut(error) from error

    async def listener(self, host: str, port: int) -> str:
        """What a connection to that address reaches, as long as it is the replica's own.  Raises Shut."""
        try:
            return await self._backend.listener(self._handle, self._task, host, port)
        except NoEntry as error:
            raise _shut(error) from error

    async def end(self, why: Entry.Why) -> None:
        """End all of it, and write down why; only the first time."""
        if self.ended.done():
            return
        self.ended.set_result(why)
        await asyncio.gather(*(session.close() for session in list(self._sessions)), return_exceptions=True)
        try:
            await aside(entries.end, self.pk, why)
        except Exception as error:  # noqa: BLE001  # it is found to be stale a little later
            log.warning("entry_end_not_written", entry=self.pk, problem=repr(error))


def _shut(error: NoEntry) -> Shut:
    if error.barrier in {Barrier.FAILED, Barrier.LIMITS, Barrier.ENGINE_AWAY}:
        log.warning("entry_failed", barrier=error.barrier, detail=error.detail)
    return Shut(error.barrier)
