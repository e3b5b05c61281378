"""The open sessions of this process, and the repeated check of their rights."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from django.db import DatabaseError

from jobs.access import sessions
from jobs.access.connections import backend_of
from jobs.access.gateway import rechecks
from jobs.access.sessions import EntryOrigin, EntryRefused
from jobs.access.terminal_gateway.session import JobSession
from jobs.backends.base import Handle, ReplicaRef
from jobs.backends.sessions import Enterable
from jobs.live.thread_pool import run_in_thread
from jobs.models import AccessSession, Replica
from quotas.models import User

log = structlog.get_logger(__name__)

TICK_SECONDS: Final = 1.0
"""How often it is asked whether somebody wants an entry ended."""


class OpenSessions:
    """The open sessions of this process."""

    def __init__(self) -> None:
        self._sessions: dict[int, JobSession] = {}
        self._clock = asyncio.get_running_loop().time
        self._checked_at = self._clock()

    async def begin(self, user: User, replica: Replica, origin: EntryOrigin) -> JobSession:
        """Begin a session.  Raises Shut, and DatabaseError."""
        return self._keep(*await run_in_thread(_begin, user, replica, origin))

    async def attach(self, key: str) -> JobSession:
        """Take over a session that the console has begun.  Raises Shut, and DatabaseError."""
        return self._keep(*await run_in_thread(_load_entry, key))

    def _keep(self, entry: AccessSession, backend: Enterable) -> JobSession:
        replica = entry.replica
        where = ReplicaRef(replica.role, replica.index, replica.run)
        session = JobSession(entry, backend, Handle(replica.attempt.handle), where)
        self._sessions[session.pk] = session
        session.ended.add_done_callback(lambda _why: self._sessions.pop(session.pk, None))
        return session

    async def close(self) -> None:
        """End all sessions."""
        await asyncio.gather(
            *(session.end(AccessSession.Why.LOST) for session in list(self._sessions.values()))
        )

    async def check_for_ever(self) -> None:
        """Check for ever: end requested sessions within a second, and those without a right in a while."""
        due = 0.0
        while True:
            now = self._clock()
            full = now >= due
            if full:
                due = now + rechecks.interval()
            await self._check(full=full)
            await asyncio.sleep(min(TICK_SECONDS, max(0.05, due - self._clock())))

    async def _check(self, *, full: bool) -> None:
        pks = list(self._sessions)
        if not pks:
            self._checked_at = self._clock()
            return
        try:
            reasons = await run_in_thread(sessions.check_rights if full else sessions.find_end_requests, pks)
        except DatabaseError as error:
            log.warning("entries_unknown", problem=type(error).__name__)
            trusted = self._clock() - self._checked_at < rechecks.LONGEST_TRUST_SECONDS
            reasons = {} if trusted else dict.fromkeys(pks, AccessSession.Why.RIGHT_LOST)
        else:
            if full:
                self._checked_at = self._clock()
        ending = [(self._sessions[pk], why) for pk, why in reasons.items() if why and pk in self._sessions]
        await asyncio.gather(*(session.end(why) for session, why in ending))


def _begin(user: User, replica: Replica, origin: EntryOrigin) -> tuple[AccessSession, Enterable]:
    backend = backend_of(replica)
    return sessions.begin(user, replica, origin), backend


def _load_entry(key: str) -> tuple[AccessSession, Enterable]:
    rows = AccessSession.objects.select_related("user", "replica__attempt__job__cluster")
    entry = rows.filter(key=key, ended_at=None).first()
    if entry is None:
        raise EntryRefused("ended")
    return entry, backend_of(entry.replica)
