"""One person's stream: the events of its sources, pings, and repeated checks of rights."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from jobs.live import sse
from jobs.live.changes import changes
from jobs.live.cursor import Cursor
from jobs.live.inbox import Inbox
from jobs.live.limits import hold_stream
from jobs.live.thread_pool import run_in_thread
from jobs.models import Job
from quotas.access import Verb, can, workspaces_of
from quotas.models import User

PING_S: Final = 2.0
"""A page that hears nothing for a little longer than two of these says so."""

LOOK_AGAIN_S: Final = (25.0, 45.0)
"""Rights are looked at again after a time between these, so that not all streams ask at once.  Whoever has
lost them is cut off within the minute."""

Look = Callable[[], frozenset[int] | None]
"""The workspaces whose changes the person may hear of now; None when the stream has to end.  Blocking."""


@dataclass(frozen=True, slots=True)
class StreamViewer:
    """A viewer, their workspaces, and a function that checks their rights again."""

    user_id: int
    workspaces: frozenset[int]
    look: Look


class EventSource(Protocol):
    """A source of events."""

    async def take(self) -> bytes:
        """Return whole events to send now; empty when there are none.

        It wakes the connection itself when there is more.
        """

    async def close(self) -> None:
        """Release everything; no events are taken any more."""


class Connection:
    """The loop of one stream.

    `inbox` hears the changes of the workspaces that `look` names.  `over` ends the stream once everything
    was sent; without it the stream goes on until the person goes or their rights do.
    """

    def __init__(
        self, wake: asyncio.Event, inbox: Inbox, sources: Sequence[EventSource], visit: StreamViewer
    ) -> None:
        self._wake = wake
        self._inbox = inbox
        self._sources = sources
        self._look = visit.look
        self._workspaces = visit.workspaces

    async def events(self, since: Cursor | None, over: Callable[[], bool]) -> AsyncIterator[bytes]:
        """The bytes of the stream, with the changes from `since` on, until `over` answers true."""
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
        while True:
            self._wake.clear()
            events_due = b"".join([await source.take() for source in self._sources])
            if events_due or loop.time() >= ping_at:
                yield events_due or sse.PING
                ping_at = loop.time() + PING_S
            if over():
                return
            if loop.time() >= look_at:
                if not await self._may_stay():
                    return
                look_at = loop.time() + _look_again_in()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(ping_at, look_at)):
                    await self._wake.wait()

    async def _may_stay(self) -> bool:
        """Ask for the rights again; the workspaces may be others than before."""
        found = await run_in_thread(self._look)
        if found is None:
            return False
        if found != self._workspaces:
            changes().leave(self._inbox)
            self._workspaces = found
            await changes().join(self._inbox, found, None)
            self._inbox.add_everything(None)
        return True


def _look_again_in() -> float:
    return random.uniform(*LOOK_AGAIN_S)  # noqa: S311  # a spread, not a secret


def open_stream(
    visit: StreamViewer,
    sources: Callable[[Inbox, asyncio.Event], Sequence[EventSource]] = lambda inbox, _wake: [inbox],
    *,
    only: frozenset[str] | None = None,
    since: Cursor | None = None,
    over: Callable[[], bool] = lambda: False,
) -> sse.EventStream:
    """A response that tells the visitor what the sources have to say.  Raises LimitReached."""
    held = hold_stream(visit.user_id)
    wake = asyncio.Event()
    inbox = Inbox(wake.set, only)
    connection = Connection(wake, inbox, sources(inbox, wake), visit)
    return sse.EventStream(connection.events(since, over), held.close)


def visible_workspaces(user: User | None) -> frozenset[int] | None:
    """Return the workspaces whose changes the person may see; None without a person."""
    if user is None:
        return None
    return frozenset(workspaces_of(user).values_list("pk", flat=True))


def workspace_of_job(user: User | None, job_pk: int, verb: Verb) -> frozenset[int] | None:
    """Return the job's workspace while the person may do `verb` with the job; else None."""
    job = Job.objects.visible_to(user).filter(pk=job_pk).first() if user is not None else None
    if user is None or job is None or not can(user, verb, job):
        return None
    return frozenset({job.workspace_id})
