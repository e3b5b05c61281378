"""Everybody who is inside a job by way of this process, asked after again and again."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from django.conf import settings
from django.db import DatabaseError

from jobs import engines
from jobs.access import entries
from jobs.access.entries import Shut, Way
from jobs.access.shells.inside import Inside
from jobs.backends.base import Handle, TaskRef
from jobs.backends.sessions import Enterable
from jobs.live.threads import aside
from jobs.models import Entry, Task
from quotas.models import User

log = structlog.get_logger(__name__)

LONGEST_TRUST_SECONDS: Final = 60.0
"""Nobody stays longer on a right that could not be looked at again (DESIGN section 8)."""

TICK_SECONDS: Final = 1.0
"""How often it is asked whether somebody wants an entry ended."""


class House:
    """The open entries of this process."""

    def __init__(self) -> None:
        self._insides: dict[int, Inside] = {}
        self._clock = asyncio.get_running_loop().time
        self._known = self._clock()

    async def let_in(self, user: User, task: Task, way: Way) -> Inside:
        """Begin an entry.  Raises Shut, and DatabaseError."""
        return self._keep(*await aside(_begin, user, task, way))

    async def take_up(self, key: str) -> Inside:
        """Hold an entry that the console has begun.  Raises Shut, and DatabaseError."""
        return self._keep(*await aside(_begun, key))

    def _keep(self, entry: Entry, backend: Enterable) -> Inside:
        task = entry.task
        where = TaskRef(task.role, task.index, task.run)
        inside = Inside(entry, backend, Handle(task.attempt.handle), where)
        self._insides[inside.pk] = inside
        inside.ended.add_done_callback(lambda _why: self._insides.pop(inside.pk, None))
        return inside

    async def close(self) -> None:
        """Everybody out."""
        await asyncio.gather(*(inside.end(Entry.Why.LOST) for inside in list(self._insides.values())))

    async def ask_after_all(self) -> None:
        """For ever: end what is asked to end at once, and what has lost its right in a while."""
        due = 0.0
        while True:
            now = self._clock()
            full = now >= due
            if full:
                due = now + min(settings.CONSOLE_GATEWAY_RECHECK_SECONDS, LONGEST_TRUST_SECONDS / 2)
            await self._look(full=full)
            await asyncio.sleep(min(TICK_SECONDS, max(0.05, due - self._clock())))

    async def _look(self, *, full: bool) -> None:
        pks = list(self._insides)
        if not pks:
            self._known = self._clock()
            return
        try:
            verdicts = await aside(entries.look if full else entries.asked, pks)
        except DatabaseError as error:
            log.warning("entries_unknown", problem=type(error).__name__)
            trusted = self._clock() - self._known < LONGEST_TRUST_SECONDS
            verdicts = {} if trusted else dict.fromkeys(pks, Entry.Why.RIGHT_LOST)
        else:
            if full:
                self._known = self._clock()
        ending = [(self._insides[pk], why) for pk, why in verdicts.items() if why and pk in self._insides]
        await asyncio.gather(*(inside.end(why) for inside, why in ending))


def _begin(user: User, task: Task, way: Way) -> tuple[Entry, Enterable]:
    backend = backend_of(task)
    return entries.begin(user, task, way), backend


def _begun(key: str) -> tuple[Entry, Enterable]:
    rows = Entry.objects.select_related("user", "task__attempt__job__cluster")
    entry = rows.filter(key=key, ended_at=None).first()
    if entry is None:
        raise Shut("ended")
    return entry, backend_of(entry.task)


def backend_of(task: Task) -> Enterable:
    """The backend that can enter the replica.  Raises Shut."""
    try:
        backend = engines.backend_for(task.attempt.job.cluster)
    except Exception as error:  # whatever an admin wrote there
        log.warning("entry_without_backend", problem=repr(error))
        raise Shut("no_exec") from error
    if not isinstance(backend, Enterable):
        raise Shut("no_exec")
    return backend
