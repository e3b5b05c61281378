"""The reader of the workspaces' streams, one a process for all watchers.

Redis carries hints.  While it is away everybody is told now and then that anything may have changed,
which makes pages look for themselves; once it is back they are told so once more.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Collection, Coroutine, Iterable
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import structlog
from django.conf import settings
from redis import RedisError
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from jobs.live import bus, cursor
from jobs.live.cursor import Cursor
from jobs.live.inbox import MOST_NAMES, Inbox

log = structlog.get_logger(__name__)

BLOCK_MS: Final = 250
"""The reader waits in Redis this long at a time, and then looks whether other streams are watched by now."""

RETRY_S: Final = 1.0
AWAY_TELL_S: Final = 10.0

T = TypeVar("T")
Entry = tuple[str, dict[str, str]]


class Changes:
    """The watchers of each workspace, and the positions in the workspaces' streams."""

    def __init__(self) -> None:
        self._redis: Redis = Redis.from_url(
            settings.REDIS_URL,
            decode_responses=True,
            socket_connect_timeout=RETRY_S,
            socket_timeout=None,
            retry=Retry(NoBackoff(), 0),
        )
        self._inboxes: dict[int, set[Inbox]] = {}
        self._positions: dict[int, str] = {}
        self._reader: asyncio.Task[None] | None = None
        self._epoch = 0
        self._lost = False
        self._told_away_at: float | None = None

    async def join(self, inbox: Inbox, workspaces: Collection[int], since: Cursor | None) -> None:
        """Tell `inbox` of the workspaces' changes, from `since` on if that can still be known.

        Without `since` it is greeted with where the streams are now.
        """
        for workspace_id in workspaces:
            self._inboxes.setdefault(workspace_id, set()).add(inbox)
        try:
            now = await _unbroken(cursor.now(self._redis))
            self._watch(workspaces, now)
            if since is None:
                inbox.greet(now)
            elif since.epoch != now.epoch:
                inbox.add_everything(now)
            else:
                await _unbroken(self._catch_up(inbox, workspaces, since, now))
        except (RedisError, OSError) as error:
            log.warning("redis_away", error=str(error))
            self._lost = True
            if self._told_away_at is not None:
                inbox.add_everything(None)  # everybody else knows already; otherwise the reader tells them
            self._watch(workspaces, None)

    def leave(self, inbox: Inbox) -> None:
        """Stop telling `inbox` of changes."""
        for workspace_id in [at for at, boxes in self._inboxes.items() if inbox in boxes]:
            self._inboxes[workspace_id].remove(inbox)
            if not self._inboxes[workspace_id]:
                del self._inboxes[workspace_id]
                self._positions.pop(workspace_id, None)

    def _watch(self, workspaces: Iterable[int], now: Cursor | None) -> None:
        """Read these streams too, from `now` on; None: once Redis is back."""
        if now is not None:
            self._epoch = now.epoch
            for workspace_id in workspaces:
                if workspace_id in self._inboxes:
                    self._positions.setdefault(workspace_id, now.before)
        if self._reader is None or self._reader.done():
            # A context of its own: the reader outlives the request that happened to need it first.
            self._reader = asyncio.create_task(self._read(), context=contextvars.Context())

    async def _catch_up(self, inbox: Inbox, workspaces: Collection[int], since: Cursor, now: Cursor) -> None:
        """Tell what happened between `since` and `now`; everything, if a stream no longer has it all."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for workspace_id in workspaces:
                key = bus.stream_of(workspace_id)
                pipe.xlen(key)
                pipe.xrange(key, count=1)
                pipe.xrange(key, min=f"{since.moment}-0", count=MOST_NAMES)
            answers = await pipe.execute()
        names: set[str] = set()
        for length, oldest, entries in zip(answers[::3], answers[1::3], answers[2::3], strict=True):
            trimmed = length >= bus.STREAM_LENGTH and _moment(oldest[0][0]) > since.moment
            if trimmed or len(entries) == MOST_NAMES:
                inbox.add_everything(now)
                return
            names.update(*map(_names, entries))
        inbox.add(names, now)

    async def _read(self) -> None:
        try:
            await self._read_while_watched()
        finally:
            await self._redis.connection_pool.disconnect(inuse_connections=False)

    async def _read_while_watched(self) -> None:
        while self._inboxes:
            try:
                if self._lost:
                    await self._begin_afresh()
                answer = await self._more()
            except (RedisError, OSError) as error:
                self._away(error)
                await asyncio.sleep(RETRY_S)
                continue
            for key, entries in answer:
                self._deliver(int(key.rpartition(":")[2]), entries)

    async def _more(self) -> list[tuple[str, list[Entry]]]:
        """Read what was written to the watched streams, waiting a little for it."""
        if not self._positions:  # whoever watches has not yet been told where the stream is
            await asyncio.sleep(BLOCK_MS / 1000)
            return []
        streams: dict[Any, Any] = {bus.stream_of(at): last for at, last in self._positions.items()}
        answer: Any = await self._redis.xread(streams, count=1000, block=BLOCK_MS)
        return list(answer.items() if isinstance(answer, dict) else answer)

    async def _begin_afresh(self) -> None:
        """Resume after an outage of Redis, whose changes are lost."""
        now = await cursor.now(self._redis)
        self._epoch, self._lost, self._told_away_at = now.epoch, False, None
        self._positions = dict.fromkeys(self._inboxes, now.before)
        self._tell_everybody(now)

    def _away(self, error: Exception) -> None:
        self._lost = True
        time = asyncio.get_running_loop().time()
        if self._told_away_at is not None and time - self._told_away_at < AWAY_TELL_S:
            return
        log.warning("redis_away", error=str(error))
        self._told_away_at = time
        self._tell_everybody(None)

    def _tell_everybody(self, now: Cursor | None) -> None:
        everybody = {inbox for boxes in self._inboxes.values() for inbox in boxes}
        for inbox in everybody:
            inbox.add_everything(now, len(everybody))

    def _deliver(self, workspace_id: int, entries: list[Entry]) -> None:
        if not entries or workspace_id not in self._positions:
            return
        last = entries[-1][0]
        self._positions[workspace_id] = last
        names = {name for entry in entries for name in _names(entry)}
        inboxes = self._inboxes[workspace_id]
        for inbox in inboxes:
            inbox.add(names, Cursor(_moment(last), self._epoch), len(inboxes))


async def _unbroken(asking: Coroutine[Any, Any, T]) -> T:
    """Wait for `asking`, which goes on though whoever waits is cancelled: half a connection is never left."""
    task = asyncio.create_task(asking)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


def _moment(entry_id: str) -> int:
    return int(entry_id.partition("-")[0])


def _names(entry: Entry) -> list[str]:
    names: list[str] = json.loads(entry[1]["names"])
    return names


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Changes] = WeakKeyDictionary()


def changes() -> Changes:
    """The reader of this process; of this loop, to be exact, since tests have several."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = Changes()
    return _by_loop[loop]
