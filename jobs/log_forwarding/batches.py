"""Batches of one sink: bounded in bytes and records, of the logs that waited longest.

What a batch is made of is stored before it is sent (`LogCursor.batch_end`, `batch_at`).  Until that is taken
back the next batch is the same one, byte by byte, whoever makes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from jobs.log_forwarding.formats import FORMATS, LogEntry, LogSource
from jobs.log_forwarding.lines import LogLine, Rest, split
from jobs.log_forwarding.positions import position_of
from jobs.logs import log_store
from jobs.models import LogCursor, LogSink, LogStream

SHARE: Final = 256 * 1024
"""Bytes of one log in a batch: several lines of the greatest length."""

LEAST_STEP: Final = timedelta(milliseconds=1)
"""Between the times of two batches of a log, whose records are a nanosecond apart."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LogWindow:
    """The part of a log, up to `end`, that a batch has.

    `encoded` are its records.  Without any, all that is new is known: `scanned` bytes have no whole line, or
    the log has ended (`is_last`).
    """

    cursor: LogCursor
    source: LogSource
    lines: Sequence[LogLine] = ()
    encoded: Sequence[bytes] = ()
    end: int = 0
    scanned: int = 0
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows that are sent in one request, and its body."""

    windows: Sequence[LogWindow]
    body: bytes

    @property
    def lines(self) -> list[LogLine]:
        """All lines, in the order of the body."""
        return [line for window in self.windows for line in window.lines]


def build(sink: LogSink) -> Batch:
    """Return the sink's next batch: the stored one if there is one, else one of new lines."""
    cursors = sink.cursors.select_related("stream__attempt__job__owner", "stream__attempt__job__workspace")
    rows = list(cursors.order_by(F("batch_at").asc(nulls_first=True), "pk"))
    for row in rows:
        row.sink = sink
    stored = [row for row in rows if row.batch_end is not None]
    windows = [_reread(row) for row in stored] if stored else list(_fill(sink, rows))
    parts = [(window.source, window.encoded) for window in windows if window.encoded]
    return Batch(windows, FORMATS[sink.format].join(parts) if parts else b"")


def _fill(sink: LogSink, rows: Sequence[LogCursor]) -> Iterator[LogWindow]:
    """Yield the windows of logs that have news, until the batch is full."""
    now = timezone.now()
    records, size = sink.batch_records, settings.CONSOLE_LOG_BATCH_KIB * 1024
    is_first = True
    for row in rows:
        if not position_of(row).has_news:
            continue
        before = row.batch_at
        row.batch_at = now if before is None else max(now, before + LEAST_STEP)
        found = _read_new(row)
        window = _limit(found, records, size, is_first=is_first)
        yield window
        is_first = is_first and not window.encoded
        records -= len(window.encoded)
        size -= sum(map(len, window.encoded))
        if records <= 0 or size <= 0 or window is not found:
            return


def _limit(window: LogWindow, records: int, size: int, *, is_first: bool) -> LogWindow:
    """Return the window with as many records as fit; at least one of the first."""
    fitting = 0
    for encoded in window.encoded[:records]:
        size -= len(encoded)
        if size < 0 and not (is_first and fitting == 0):
            break
        fitting += 1
    if fitting == len(window.encoded):
        return window
    end = window.lines[fitting - 1].end if fitting else window.cursor.offset
    lines, encoded_records = window.lines[:fitting], window.encoded[:fitting]
    return replace(window, lines=lines, encoded=encoded_records, end=end, scanned=0, is_last=False)


def _read_new(cursor: LogCursor) -> LogWindow:
    """Return the window of a log's new lines, of at most SHARE bytes."""
    log, size = cursor.stream, position_of(cursor).size
    part = _read(log, cursor.offset, SHARE)
    lines = list(_split(log, part, Rest.WAITS))
    end = max([cursor.offset, *(line.end for line in lines)])
    is_whole = part.next_offset >= part.size
    return _encode(
        cursor,
        lines,
        end=end,
        scanned=size if is_whole and not log.sealed else 0,
        is_last=log.sealed and end >= part.size,
    )


def _reread(cursor: LogCursor) -> LogWindow:
    """Return the stored window of a log; it has no lines where the log is lost."""
    log, end = cursor.stream, cursor.batch_end or 0
    lines: list[LogLine] = []
    at, size = cursor.offset, 0
    while at < end:
        part = _read(log, at, end - at)
        size = part.size
        if part.next_offset <= at:
            break
        lines += _split(log, part, Rest.CONTINUES)
        at = part.next_offset
    return _encode(cursor, lines, end=end, is_last=log.sealed and end >= size)


def _read(log: LogStream, offset: int, limit: int) -> log_store.Slice:
    try:
        return log_store.read(log, offset, limit)
    except log_store.Unsafe:
        return log_store.Slice(b"", offset, offset, 0, log.state)


def _split(log: LogStream, part: log_store.Slice, rest: Rest) -> Iterator[LogLine]:
    """Yield the lines of a part; the notice of bytes that a cap left out is a line that covers them."""
    if part.next_offset != part.offset + len(part.data):
        yield LogLine(part.offset, part.next_offset, part.data.decode().strip())
        return
    ends = log.state != LogStream.State.OPEN and part.next_offset >= part.size
    ends = ends or part.next_offset == log.cut_from
    yield from split(part.data, part.offset, Rest.ENDS if ends else rest)


def _encode(
    cursor: LogCursor, lines: Sequence[LogLine], *, end: int, scanned: int = 0, is_last: bool
) -> LogWindow:
    """Return a window with its records encoded in the sink's format, at the time of its batch."""
    source = _source(cursor)
    encode = FORMATS[cursor.sink.format].encode
    at_ns = _nanoseconds(cursor.batch_at or timezone.now())
    encoded = [encode(LogEntry(source, line, at_ns + number)) for number, line in enumerate(lines)]
    return LogWindow(cursor, source, lines, encoded, end, scanned, is_last)


def _source(cursor: LogCursor) -> LogSource:
    log = cursor.stream
    attempt, job = log.attempt, log.attempt.job
    labels = {
        "workspace": job.workspace.slug,
        "job": job.public_id,
        "role": log.role,
        "index": str(log.index),
        "attempt": str(attempt.number),
        "run": str(log.run),
        "stream": log.name,
    }
    key = "-".join(value for name, value in labels.items() if name != "workspace")
    return LogSource(key, {**cursor.sink.labels, **labels}, {"name": job.name, "owner": job.owner.username})


def _nanoseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1) * 1000


def encode_test(sink: LogSink, text: str) -> bytes:
    """Return the body of a test, a batch of one record with the text."""
    now = timezone.now()
    key = f"test-{sink.pk}-{_nanoseconds(now)}"
    source = LogSource(key, {**sink.labels, "workspace": sink.workspace.slug, "stream": "test"}, {})
    chosen = FORMATS[sink.format]
    return chosen.join([(source, [chosen.encode(LogEntry(source, LogLine(0, 0, text), _nanoseconds(now)))])])
