"""One person's session in one replica: everything they run there, and its end."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

import structlog

from jobs.access import sessions
from jobs.access.sessions import EntryRefused
from jobs.backends.base import Handle, ReplicaRef
from jobs.backends.sessions import Barrier, Enterable, NoEntry, Session, SessionRequest
from jobs.live.thread_pool import run_in_thread
from jobs.models import AccessSession

log = structlog.get_logger(__name__)

MOST_SESSIONS: Final = 64
"""Channels of one SSH connection, those included that have left something in the background."""


class JobSession:
    """An open session; `ended` is done once it is over, and holds the reason."""

    def __init__(self, entry: AccessSession, backend: Enterable, handle: Handle, replica: ReplicaRef) -> None:
        self.pk: Final = entry.pk
        self._backend, self._handle, self._replica = backend, handle, replica
        self._sessions: set[Session] = set()
        self._beginning = 0
        self._closing: set[asyncio.Task[None]] = set()
        self.ended: asyncio.Future[AccessSession.Why] = asyncio.get_running_loop().create_future()

    async def run(self, wanted: SessionRequest) -> Session:
        """Run something in the replica, until `leave` or the entry's end.  Raises Shut."""
        if self.ended.done():
            raise EntryRefused("ended")
        if len(self._sessions) + self._beginning >= MOST_SESSIONS:
            raise EntryRefused("full_person")
        self._beginning += 1
        try:
            session = await self._backend.exec(self._handle, self._replica, wanted)
        except NoEntry as error:
            raise refusal_of(error) from error
        finally:
            self._beginning -= 1
        if self.ended.done():  # meanwhile
            await session.close()
            raise EntryRefused("ended")
        self._sessions.add(session)
        return session

    def leave(self, session: Session) -> None:
        """Forget a session of the backend once its background processes have ended too."""
        closing = asyncio.ensure_future(self._close_after(session))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close_after(self, session: Session) -> None:
        await session.wait_for_processes()
        await session.close()
        self._sessions.discard(session)

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a connected socket to what the replica serves at `host`:`port`.

        Raises EntryRefused, or TimeoutError where it accepts nothing.
        """
        if self.ended.done():
            raise EntryRefused("ended")
        try:
            made = await self._backend.connect(self._handle, self._replica, host, port)
        except NoEntry as error:
            raise refusal_of(error) from error
        if self.ended.done():  # meanwhile
            made.close()
            raise EntryRefused("ended")
        return made

    async def end(self, why: AccessSession.Why) -> None:
        """End all of it, and write down why; only the first time."""
        if self.ended.done():
            return
        self.ended.set_result(why)
        await asyncio.gather(*(session.close() for session in list(self._sessions)), return_exceptions=True)
        try:
            await run_in_thread(sessions.end, self.pk, why)
        except Exception as error:  # noqa: BLE001  # it is found to be stale a little later
            log.warning("entry_end_not_written", entry=self.pk, problem=repr(error))


def refusal_of(error: NoEntry) -> EntryRefused:
    """Return why a backend lets nobody enter; log what an admin should see."""
    if error.barrier in {Barrier.FAILED, Barrier.LIMITS, Barrier.ENGINE_AWAY}:
        log.warning("entry_failed", barrier=error.barrier, detail=error.detail)
    return EntryRefused(error.barrier)
