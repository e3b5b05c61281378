"""The parts of a followed log, one for each attempt and run: live, or from the store.

A live log is read, decoded and encoded once, and kept for a moment for all who follow it.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections import deque
from dataclasses import dataclass
from typing import Final, TypeAlias

from jobs.live import sse
from jobs.live.thread_pool import run_in_thread
from jobs.logs import log_store, redaction
from jobs.logs.redaction import NOTHING, Redactor
from jobs.models import LogStream

SLICE: Final = 32 * 1024
"""The most bytes of a log in one event."""

KEPT: Final = 256 * 1024
"""Bytes of events kept for those who are a little behind; whoever is further back reads the file."""

HURRY: Final = 1024 * 1024
"""When more than this has been written since the last look, it is not read for everybody: each follower
reads it at their own pace."""

SOONEST_S: Final = 0.03
LATEST_S: Final = 0.1
EACH_FOLLOWER_S: Final = 0.0001
"""Between two looks at the file: short while it grows, longer while it does not, and longer the more
followers have to be written to after each."""


Place: TypeAlias = tuple[int, int]
"""Attempt and run."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A `log` event with the bytes of the log that it covers."""

    start: int
    end: int
    event: bytes


def decode(data: bytes, *, last: bool) -> tuple[str, int]:
    """The text of `data` and how many bytes it covers: a character cut off at the end waits for its rest.

    With `last` nothing more can come, and what is no UTF-8 becomes U+FFFD; so it does when nothing but the
    beginning of a character is there to be read again and again.
    """
    text, used = codecs.utf_8_decode(data, "replace", last)
    if not used and data:
        text, used = codecs.utf_8_decode(data, "replace", True)
    return text, used


def identity(place: Place, offset: int) -> str:
    """The `id:` of an event after which `offset` comes."""
    return f"{place[0]}.{place[1]}.{offset}"


def log_event(place: Place, end: int, text: str) -> bytes:
    """The `log` event whose text ends before the byte `end`."""
    return sse.event("log", text, identity(place, end))


class Tail:
    """The file of a log that lives, from where it ends now on.

    `place` is attempt and run; `head` is the byte up to which everybody may have been told.  Once somebody
    has set `ended`, the file is whole, and `done` follows when all of it was seen.
    """

    def __init__(self, place: Place, file: int, redactor: Redactor = NOTHING) -> None:
        self.place = place
        self._redactor = redactor
        self.ended = False
        self.done = False
        self._file = file
        self._frames: deque[Frame] = deque()
        self._kept = 0
        self.head = self._whole_characters(redactor.visible_size(file, os.fstat(file).st_size))

    def _whole_characters(self, size: int) -> int:
        """`size` without the beginning of a character at the end."""
        start = max(0, size - 3)
        last = os.pread(self._file, size - start, start)
        for back in range(1, len(last) + 1):
            byte = last[-back]
            if byte >= 0xC0:
                needs = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2
                return size - back if needs > back else size
            if byte < 0x80:
                break
        return size

    def __del__(self) -> None:
        os.close(self._file)  # whoever is behind still reads it when the log has ended

    def look(self) -> bool:
        """Read what was written since; whether anything was, or the log has turned out to be whole."""
        ended = self.ended  # asked before the size: what is written before the end is then seen
        size = os.fstat(self._file).st_size
        if not ended:
            size = self._redactor.visible_size(self._file, size)
        if size - self.head > HURRY:
            self._forget_frames()
            self.head = self._whole_characters(size - SLICE)
        grown = False
        while size > self.head and (frame := self._frame(self.head, size, last=ended)):
            self._keep(frame)
            self.head = frame.end
            grown = True
        self.done = ended and self.head >= size
        return grown or self.done

    def _frame(self, start: int, end: int, *, last: bool) -> Frame | None:
        data = self._redactor.pread(self._file, min(SLICE, end - start), start)
        text, used = codecs.utf_8_decode(data, "replace", last and start + len(data) >= end)
        if not used:
            return None
        return Frame(start, start + used, log_event(self.place, start + used, text))

    def _keep(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._kept += len(frame.event)
        while self._kept > KEPT and len(self._frames) > 1:
            self._kept -= len(self._frames.popleft().event)

    def _forget_frames(self) -> None:
        self._frames.clear()
        self._kept = 0

    async def after(self, offset: int) -> Frame | None:
        """The next events from `offset` on, as one, of about SLICE bytes; None when there are none.

        Whoever stands where no kept event begins gets theirs from the file.
        """
        if offset >= self.head:
            return None
        frames: list[Frame] = []
        for frame in reversed(self._frames):  # nearly everybody is at the last one
            if frame.start < offset:
                break
            frames.append(frame)
        if not frames or frames[-1].start != offset:
            await asyncio.sleep(0)  # a whole log is sent in many slices; others get their turn between them
            return self._frame_behind(offset)
        while len(frames) > 1 and frames[0].end - offset > SLICE:
            frames.pop(0)
        return Frame(offset, frames[0].end, b"".join(frame.event for frame in reversed(frames)))

    def _frame_behind(self, offset: int) -> Frame | None:
        data = self._redactor.pread(self._file, min(SLICE, self.head - offset), offset)
        text, used = decode(data, last=False)
        if not used:
            return None
        return Frame(offset, offset + used, log_event(self.place, offset + used, text))


def pause(grown: bool, before: float, followers: int) -> float:
    """Seconds until the next look, after one that found something or not."""
    soonest = max(SOONEST_S, followers * EACH_FOLLOWER_S)
    return soonest if grown else max(soonest, min(LATEST_S, before * 1.5))


async def keep_looking(tail: Tail, followers: set[asyncio.Event]) -> None:
    """Look at the file again and again, and wake `followers` when there is something to take."""
    wait = SOONEST_S
    while not tail.done:
        grown = tail.look()
        if grown:
            for follower in tuple(followers):
                follower.set()
        wait = pause(grown, wait, len(followers))
        await asyncio.sleep(wait)


class Stored:
    """A log that will not grow: read from the store, slice by slice, by each who follows it."""

    done = True

    def __init__(self, row: LogStream, place: Place) -> None:
        self.place = place
        self.head = row.size
        self._row = row

    async def after(self, offset: int) -> Frame | None:
        """The next event from `offset` on, of at most SLICE bytes; None when there are none."""
        found = await run_in_thread(log_store.read, self._row, offset, SLICE)
        self.head = found.size
        text, used = decode(found.data, last=found.next_offset >= found.size)
        if not used:
            return None
        # What a cap left out is skipped: there the next byte is not the one after the text.
        end = found.next_offset if used == len(found.data) else found.offset + used
        return Frame(offset, end, log_event(self.place, end, text))


class LogPart:
    """One attempt and run of a followed log; `next` is the one that came after it."""

    def __init__(self, row: LogStream, bytes_: Tail | Stored) -> None:
        self.row = row
        self.bytes = bytes_
        self.next: LogPart | None = None

    @property
    def place(self) -> Place:
        """Attempt and run."""
        return self.bytes.place

    def finish(self) -> None:
        """Treat the log as complete, whatever its row says."""
        if isinstance(self.bytes, Tail):
            self.bytes.ended = True
            self.bytes.look()

    async def start(self, offset: int) -> int:
        """The byte that `offset` means; a negative one counts from the end, to the beginning of a line."""
        if offset >= 0:
            return offset
        return (await run_in_thread(log_store.read, self.row, offset, 0)).offset


def open_part(row: LogStream, attempt: int) -> LogPart | None:
    """The log of `row`; None while there is nothing to read yet.  Raises `log_store.Unsafe`."""
    place = (attempt, row.run)
    if not row.sealed and row.live_path:
        try:
            with log_store.open_live(row.live_path) as file:
                return LogPart(row, Tail(place, os.dup(file), redaction.of_stream(row)))
        except FileNotFoundError:
            pass  # it was sealed and removed since the row was read, or is not there yet
    if row.state == LogStream.State.OPEN:
        return None
    return LogPart(row, Stored(row, place))
