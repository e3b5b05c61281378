"""The log that a replica writes to now, attempt after attempt, found once a process for all viewers."""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import structlog
from django.db import DatabaseError

from jobs.live import bus
from jobs.live.changes import changes
from jobs.live.inbox import Inbox
from jobs.live.tail import LogPart, Tail, keep_looking, open_part
from jobs.live.thread_pool import run_in_thread
from jobs.logs import log_store
from jobs.models import Job, LogStream
from jobs.states import TERMINAL, State

log = structlog.get_logger(__name__)

LOOK_AGAIN_S: Final = 2.0
"""The rows are looked at again at least so often, whatever Redis tells."""

SOONEST_S: Final = 0.05
"""And at most so often, whatever it tells; also when a row names a file that is not there yet, though then
less and less often."""


@dataclass(frozen=True, slots=True)
class LogName:
    """A replica's log.  Without `attempt` the newest is followed, and without `run` its newest run."""

    job_pk: int
    role: str
    index: int
    attempt: int | None = None
    run: int | None = None
    stream: str = "output"


@dataclass(frozen=True, slots=True)
class NewestLog:
    """The newest row of a log, if there is one yet, and whether no newer one can come."""

    row: LogStream | None
    last: bool


def find(name: LogName) -> NewestLog:
    """Look the log up."""
    rows = LogStream.objects.filter(
        attempt__job_id=name.job_pk, role=name.role, index=name.index, name=name.stream
    )
    if name.attempt is not None:
        rows = rows.filter(attempt__number=name.attempt)
    if name.run is not None:
        rows = rows.filter(run=name.run)
    # The job first: what it wrote before it ended is then found.
    state = Job.objects.filter(pk=name.job_pk).values_list("state", flat=True).first()
    row = rows.select_related("attempt").order_by("-attempt__number", "-run").first()
    over = state is None or State(state) in TERMINAL
    fixed = row is not None and name.attempt is not None and name.run is not None
    return NewestLog(row, over or fixed)


class FollowedLog:
    """All who follow one log in this process, and the task that keeps up with it for them.

    `part` is the newest part there is; `settled` says that it is whole and that none can come after it,
    or, without a part, that there will never be one.
    """

    def __init__(self, name: LogName, public_id: str, workspace_id: int) -> None:
        self.name = name
        self.part: LogPart | None = None
        self.settled = False
        self._expects_file = False
        self._followers: set[asyncio.Event] = set()
        self._changed = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        # A context of its own: it outlives the request that happened to be the first.
        self._update_task = asyncio.create_task(
            self._keep_up(public_id, workspace_id), context=contextvars.Context()
        )

    def add(self, wake: asyncio.Event) -> None:
        """Set `wake` whenever there may be something new."""
        self._followers.add(wake)

    def remove(self, wake: asyncio.Event) -> bool:
        """Forget a follower; whether that was the last one, with whom everything ends."""
        self._followers.discard(wake)
        if self._followers:
            return False
        self._update_task.cancel()
        self._stop_reading()
        return True

    async def _keep_up(self, public_id: str, workspace_id: int) -> None:
        only = frozenset({bus.job_name(public_id)})
        inbox = Inbox(self._changed.set, only, least_s=SOONEST_S)
        try:
            await changes().join(inbox, {workspace_id}, None)
            soon = SOONEST_S
            while not self.settled:
                self._changed.clear()
                inbox.look()
                await self._look()
                pause = min(soon, LOOK_AGAIN_S) if self._expects_file else LOOK_AGAIN_S
                soon *= 1.5
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), pause)
                    soon = SOONEST_S
        finally:
            changes().leave(inbox)
            await inbox.close()

    async def _look(self) -> None:
        """Look at the rows, and make the parts what they say."""
        try:
            found = await run_in_thread(find, self.name)
            if found.row is not None:
                self._use(found.row)
        except (DatabaseError, log_store.Unsafe) as error:
            log.warning("log_not_followed", log=str(self.name), error=str(error))
            return
        whole = found.row is None or (self.part is not None and self.part.bytes.done)
        if found.last and whole:
            self.settled = True
            self._wake()

    def _use(self, row: LogStream) -> None:
        place = (row.attempt.number, row.run)
        if self.part is None or self.part.place != place:
            if self.part is not None:
                self.part.finish()
                self._wake()
            part = open_part(row, row.attempt.number)
            self._expects_file = part is None and bool(row.live_path)
            if part is None:
                return
            self._go_on_with(part)
        assert self.part is not None
        self.part.row = row
        if row.state != LogStream.State.OPEN:
            self.part.finish()
            self._wake()

    def _go_on_with(self, part: LogPart) -> None:
        self._stop_reading()
        if self.part is not None:
            self.part.next = part
        self.part = part
        if isinstance(part.bytes, Tail):
            self._reader = asyncio.create_task(keep_looking(part.bytes, self._followers))
        self._wake()

    def _stop_reading(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None

    def _wake(self) -> None:
        for follower in tuple(self._followers):
            follower.set()


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[LogName, FollowedLog]] = WeakKeyDictionary()


def follow(name: LogName, public_id: str, workspace_id: int, wake: asyncio.Event) -> FollowedLog:
    """Follow the log together with others."""
    followings = _by_loop.setdefault(asyncio.get_running_loop(), {})
    if name not in followings:
        followings[name] = FollowedLog(name, public_id, workspace_id)
    followings[name].add(wake)
    return followings[name]


def unfollow(following: FollowedLog, wake: asyncio.Event) -> None:
    """Stop following."""
    if following.remove(wake):
        _by_loop[asyncio.get_running_loop()].pop(following.name, None)
