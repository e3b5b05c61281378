"""A follower of a log: a position, and the events after it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from jobs.live import sse
from jobs.live.followed_logs import FollowedLog, find, follow, unfollow
from jobs.live.log_responses import LogRequest
from jobs.live.tail import Frame, LogPart, Place, identity, log_event, open_part
from jobs.live.thread_pool import run_in_thread
from jobs.logs import log_store, log_times
from jobs.models import Job, LogStream


@dataclass(frozen=True, slots=True)
class Position:
    """The byte after the last one that is known; a negative offset counts from the end.

    `place` is the attempt and run in which it is meant; None is whichever is the newest.
    """

    offset: int = 0
    place: Place | None = None

    @classmethod
    def parse(cls, text: str) -> Position | None:
        """The position in the `id:` of a `log` event, `<attempt>.<run>.<offset>`; None for another id."""
        pieces = text.split(".")
        if len(pieces) != 3 or not all(piece.isascii() and piece.isdecimal() for piece in pieces):
            return None
        attempt, run, offset = map(int, pieces)
        return cls(offset, (attempt, run))


def parse_log_request(query: Mapping[str, str], last_event_id: str) -> tuple[LogRequest, Position] | None:
    """The log that `log=ROLE/INDEX` names, and where to begin; None when none is named.

    The browser's own reconnection (`last_event_id`) knows better than the address.  Raises BadNumber.
    """
    role, slash, index = query.get("log", "").rpartition("/")
    if not slash:
        return None
    # Not `**query`: what Django hands over is a dictionary of lists to everybody but its own methods.
    wanted = LogRequest.parse(dict(query.items()) | {"role": role, "index": index})
    return wanted, Position.parse(last_event_id) or Position(wanted.offset)


class LogReader:
    """The events of one log for one person.

    `log`: a JSON string; `end`: this attempt's log is whole, `{"state"}`; `attempt`: what follows was
    written by another attempt or run, `{"attempt", "run"}`.
    """

    def __init__(self, job: Job, wanted: LogRequest, position: Position, wake: asyncio.Event) -> None:
        self._name = wanted.of(job)
        self._has_times = wanted.has_times
        self._job = (job.public_id, job.workspace_id)
        self._position = position
        self._wake = wake
        self._following: FollowedLog | None = None
        self._part: LogPart | None = None
        self._offset = 0
        self._told_end = False

    @property
    def over(self) -> bool:
        """Tell whether everything was told and nothing can follow."""
        following = self._following
        return following is not None and following.settled and self._told_end and self._part is following.part

    async def take(self) -> bytes:
        """The next events, of about `tail.SLICE` bytes of the log; empty when there are none."""
        if self._following is None:
            self._following = follow(self._name, *self._job, self._wake)
        if self._part is None and not await self._begin(self._following):
            return self._never() if self._following.settled else b""
        part = self._part
        assert part is not None
        if (frame := await part.bytes.after(self._offset)) is not None:
            start, self._offset = self._offset, frame.end
            self._wake.set()
            return await run_in_thread(_add_times, part, start, frame) if self._has_times else frame.event
        if part.bytes.done and self._offset >= part.bytes.head:
            return self._end_of(part)
        return b""

    async def close(self) -> None:
        """Stop following."""
        if self._following is not None:
            unfollow(self._following, self._wake)

    async def _begin(self, following: FollowedLog) -> bool:
        """Find the part to begin in; False while there is none."""
        newest, place = following.part, self._position.place
        if newest is None or (place is not None and newest.place < place):
            return False
        part, offset = newest, self._position.offset
        if place is not None and newest.place != place:
            part, offset = await self._earlier(place, newest)
        self._offset = await part.start(offset)
        self._part = part
        return True

    async def _earlier(self, place: Place, newest: LogPart) -> tuple[LogPart, int]:
        """The part that `place` names, to go on with `newest`; that one's beginning when it is not kept."""
        found = await run_in_thread(find, replace(self._name, attempt=place[0], run=place[1]))
        part = open_part(found.row, place[0]) if found.row is not None else None
        if part is None:
            return newest, 0
        part.finish()
        part.next = newest
        return part, self._position.offset

    def _end_of(self, part: LogPart) -> bytes:
        """The log of this attempt is whole: say so, and go on with the next one if there is one."""
        if not self._told_end:
            self._told_end = True
            self._wake.set()
            return sse.event("end", {"state": part.row.state}, identity(part.place, self._offset))
        if part.next is None:
            return b""
        self._part, self._offset, self._told_end = part.next, 0, False
        self._wake.set()
        attempt, run = part.next.place
        return sse.event("attempt", {"attempt": attempt, "run": run}, identity(part.next.place, 0))

    def _never(self) -> bytes:
        """The job has ended and this replica has written nothing that is still there."""
        if self._told_end:
            return b""
        self._told_end = True
        return sse.event("end", {"state": LogStream.State.GONE.value})


def _add_times(part: LogPart, start: int, frame: Frame) -> bytes:
    """Return the event of a frame with a time before each of its lines."""
    found = log_store.read(part.row, start, frame.end - start)
    if len(found.data) != frame.end - start:  # a notice for what a cap left out
        return frame.event
    text = log_times.add_times(part.row, found.data, start).decode("utf-8", "replace")
    return log_event(part.place, frame.end, text)
