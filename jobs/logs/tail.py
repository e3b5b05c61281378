"""The last lines of a log, as plain text for a page's head."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jobs.logs import log_store
from jobs.models import Attempt, LogStream, Replica
from jobs.states import ReplicaState

LINES: Final = 20
REACH: Final = 16 * 1024
"""Bytes from the end; the store goes back from there to the beginning of a line."""

MOST_REACH: Final = log_store.MOST_AT_ONCE
"""Bytes from the end that are read for many lines."""

LONGEST_LINE: Final = 2000

_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS and other strings
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class TailLine:
    """A line near the end of a log, as plain text, and the offset of its first byte."""

    offset: int
    text: str


def last_lines(stream: LogStream, count: int = LINES) -> list[str]:
    """Return at most `count` lines from the end of `stream`; none where it can't be read."""
    return [line.text for line in lines_at_end(stream, count)]


def lines_at_end(stream: LogStream, count: int) -> list[TailLine]:
    """Return the lines of `last_lines` with their offsets."""
    try:
        part = log_store.read(stream, -REACH, REACH + log_store.LINE_REACH)
    except log_store.Unsafe:
        return []
    lines, offset = [], part.offset
    for line in part.data.rstrip(b"\n").split(b"\n") if part.data else ():
        lines.append((offset, line))
        offset += len(line) + 1
    return [
        TailLine(at, plain(line.decode("utf-8", "replace"))[:LONGEST_LINE]) for at, line in lines[-count:]
    ]


def read_lines(stream: LogStream, count: int) -> list[str]:
    """Return at most `count` lines from the end of `stream`, as they were written; none if it can't be read.

    Of a longer log than `MOST_REACH` they are those of its end.
    """
    reach, data = REACH, b""
    try:
        while True:
            data, is_whole = _read_end(stream, reach)
            if is_whole or reach >= MOST_REACH or data.count(b"\n") > count:
                break
            reach = min(16 * reach, MOST_REACH)
    except log_store.Unsafe:
        return []
    lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n") if data else []
    return [line.rstrip("\r") for line in lines[-count:]]


def _read_end(stream: LogStream, reach: int) -> tuple[bytes, bool]:
    """Return about the last `reach` bytes from the beginning of a line, and whether they are all there are.

    A notice stands for bytes that a cap left out, so that it takes several reads to come to the end.
    """
    part = log_store.read(stream, -reach, reach + log_store.LINE_REACH)
    pieces, is_whole = [part.data], part.offset == 0
    while part.data and part.next_offset < part.size and sum(map(len, pieces)) < MOST_REACH:
        part = log_store.read(stream, part.next_offset, MOST_REACH)
        pieces.append(part.data)
    return b"".join(pieces), is_whole


def plain(line: str) -> str:
    """Strip colours and control characters from a line, as a terminal would leave it.

    A progress bar writes over itself after each carriage return: what it wrote last is what counts.
    """
    last = line.rstrip("\r").rpartition("\r")[2]
    return _CONTROLS.sub("", _ESCAPES.sub("", last))


def first_failed(attempt: Attempt, run: int) -> Replica | None:
    """Return the replica of that run which failed first."""
    rows = Replica.objects.filter(attempt=attempt, run=run, state=ReplicaState.FAILED)
    return rows.order_by("ended_at", "ordinal").first()
