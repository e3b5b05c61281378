"""The parts of a followed log: one for each attempt and run, live or from the store."""

from __future__ import annotations

import os
from typing import Final

from jobs import logs
from jobs.live.tail import SLICE, Frame, Place, Tail, decode, log_event
from jobs.live.threads import aside
from jobs.logs import redaction
from jobs.models import LogStream

GONE: Final = LogStream.State.GONE.value


class Stored:
    """A log that will not grow: read from the store, slice by slice, by each who follows it."""

    done = True

    def __init__(self, row: LogStream, place: Place) -> None:
        self.place = place
        self.head = row.size
        self._row = row

    async def after(self, offset: int) -> Frame | None:
        """The next event from `offset` on, of at most SLICE bytes; None when there are none."""
        found = await aside(logs.read, self._row, offset, SLICE)
        self.head = found.size
        text, used = decode(found.data, last=found.next_offset >= found.size)
        if not used:
            return None
        # What a cap left out is skipped: there the next byte is not the one after the text.
        end = found.next_offset if used == len(found.data) else found.offset + used
        return Frame(offset, end, log_event(self.place, end, text))


class Part:
    """One attempt and run of a followed log; `next` is the one that came after it."""

    def __init__(self, row: LogStream, bytes_: Tail | Stored) -> None:
        self.row = row
        self.bytes = bytes_
        self.next: Part | None = None

    @property
    def place(self) -> Place:
        """Attempt and run."""
        return self.bytes.place

    def finish(self) -> None:
        """Nothing writes to it any more, whatever its row says."""
        if isinstance(self.bytes, Tail):
            self.bytes.ended = True
            self.bytes.look()

    async def start(self, offset: int) -> int:
        """The byte that `offset` means; a negative one counts from the end, to the beginning of a line."""
        if offset >= 0:
            return offset
        return (await aside(logs.read, self.row, offset, 0)).offset


def open_part(row: LogStream, attempt: int) -> Part | None:
    """The log of `row`; None while there is nothing to read yet.  Raises `logs.Unsafe`."""
    place = (attempt, row.run)
    if not row.sealed and row.live_path:
        try:
            with logs.opened(row.live_path) as file:
                return Part(row, Tail(place, os.dup(file), redaction.of_stream(row)))
        except FileNotFoundError:
            pass  # it was sealed and removed since the row was read, or is not there yet
    if row.state == LogStream.State.OPEN:
        return None
    return Part(row, Stored(row, place))
