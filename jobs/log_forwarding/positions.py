"""Positions in logs: which logs a sink gets, which have news for it, and how much it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from jobs.logs import log_store
from jobs.models import Attempt, LogCursor, LogSink, LogStream


@dataclass(frozen=True, slots=True)
class Position:
    """How far a log was sent, and what is known of the log."""

    offset: int
    scanned: int
    batch_end: int | None
    state: str
    sealed: bool
    sealed_size: int
    live_path: str

    @property
    def size(self) -> int:
        """The log's bytes; of a live log they are asked of its file."""
        return self.sealed_size if self.sealed else log_store.live_size(self.live_path)

    @property
    def has_news(self) -> bool:
        """Tell whether there may be something to send, or the end of the log to note."""
        if self.sealed or self.batch_end is not None:
            return True
        seen = self.offset if self.state != LogStream.State.OPEN else max(self.offset, self.scanned)
        return self.size > seen


def position_of(cursor: LogCursor) -> Position:
    """Return the position of a cursor, whose log was loaded with it."""
    log = cursor.stream
    return Position(
        cursor.offset, cursor.scanned, cursor.batch_end, log.state, log.sealed, log.size, log.live_path
    )


def follow(attempts: Sequence[Attempt], run: int) -> None:
    """Have the logs of a run sent to the sinks of their workspaces, from those jobs' submission on.

    Call it in the transaction that makes the logs.
    """
    sink = "attempt__job__workspace__log_sinks"
    rows = LogStream.objects.filter(
        attempt__in=attempts, run=run, **{f"{sink}__created_at__lte": F("attempt__job__created_at")}
    )
    cursors = [LogCursor(sink_id=sink_id, stream_id=pk) for sink_id, pk in rows.values_list(sink, "pk")]
    LogCursor.objects.bulk_create(cursors, ignore_conflicts=True, batch_size=500)


def find_due() -> list[int]:
    """Return the sinks that have something to do, those that waited longest first; one query.

    These have news, or a test that was asked for, and nobody works for them.
    """
    is_free = Q(lease_until=None) | Q(lease_until__lt=Now())
    is_due = Q(enabled=True, due_at__lte=Now()) | Q(test_requested_at__isnull=False)
    due: dict[int, None] = {}
    for sink, position in _positions(LogSink.objects.filter(is_free, is_due).order_by("due_at", "pk")):
        if sink.pk not in due and (sink.is_tested or (position is not None and position.has_news)):
            due[sink.pk] = None
    return list(due)


def lags() -> Mapping[tuple[str, ...], float]:
    """Return the bytes that each sink lacks, by the names of its workspace and of itself; one query."""
    found: dict[tuple[str, ...], float] = {}
    for sink, position in _positions(LogSink.objects.order_by("pk")):
        missing = max(0, position.size - position.offset) if position is not None else 0
        key = (sink.workspace, sink.name)
        found[key] = found.get(key, 0) + missing
    return found


@dataclass(frozen=True, slots=True)
class _Sink:
    pk: int
    workspace: str
    name: str
    is_tested: bool


def _positions(sinks: QuerySet[LogSink]) -> Iterator[tuple[_Sink, Position | None]]:
    """Yield the sinks with each of their positions; with None one that has no log to send."""
    rows = sinks.values_list(
        *("pk", "workspace__slug", "name", "test_requested_at", "cursors__offset", "cursors__scanned"),
        *("cursors__batch_end", "cursors__stream__state", "cursors__stream__sealed"),
        *("cursors__stream__size", "cursors__stream__live_path"),
    )
    for pk, workspace, name, requested, offset, *rest in rows.iterator(chunk_size=2000):
        sink = _Sink(pk, workspace, name, requested is not None)
        yield sink, None if offset is None else Position(offset, *rest)
