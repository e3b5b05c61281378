"""The pass that reads new output for metrics: each byte of a log once, whatever is killed in between.

The log of the first replica of each role is read, as the ranks of a job print the same, and the TensorBoard
event files in its work folder.  Bytes are read and
parsed outside of any transaction; their samples are stored together with the offset behind them, and only if
nobody moved it in the meantime.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Final

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from jobs.faults import fault
from jobs.logs import log_store
from jobs.models import Attempt, EventFile, LogStream, MetricsCursor
from jobs.training_metrics import event_files, series
from jobs.training_metrics.output import LONGEST_LINE, parse

READ_BYTES: Final = 1 << 20
"""Of one log at a time."""

SEARCH_EVERY: Final = 6
"""Passes of a process between two searches of a job's folder for event files."""

_passes: Final = itertools.count()

PASS_S: Final = 3.0
"""Seconds after which a pass reads no more: the worker has other tasks."""


def follow(attempts: Sequence[Attempt], run: int) -> None:
    """Have the logs of a run read for metrics.  Call it in the transaction that makes the logs."""
    rows = LogStream.objects.filter(attempt__in=attempts, run=run, index=0)
    cursors = [MetricsCursor(stream_id=pk) for pk in rows.values_list("pk", flat=True)]
    MetricsCursor.objects.bulk_create(cursors, ignore_conflicts=True, batch_size=500)


def collect() -> bool:
    """Read what is new in the logs of jobs; return whether another pass has something to do at once.

    Without anything new it costs two queries, and one look at the size of each log and event file.
    """
    deadline = time.monotonic() + PASS_S
    turn = next(_passes)
    is_more = False
    for stream_id, path, is_due in list(_list_cursors()):
        if time.monotonic() > deadline:
            return True
        if (turn + stream_id) % SEARCH_EVERY == 0:
            event_files.search(stream_id, path)
        if is_due:
            is_more |= _advance(stream_id)
    return event_files.read_on(MetricsCursor.objects.all(), deadline) or is_more


def _list_cursors() -> Iterator[tuple[int, str, bool]]:
    """Yield the logs with their paths, those that waited longest first.

    The last value tells whether a log has news, or an end to be noted.
    """
    rows = MetricsCursor.objects.order_by(F("read_at").asc(nulls_first=True), "pk").values_list(
        *("pk", "offset", "scanned", "stream__state", "stream__sealed", "stream__live_path")
    )
    for pk, offset, scanned, state, is_sealed, path in rows.iterator(chunk_size=2000):
        seen = offset if state != LogStream.State.OPEN else max(offset, scanned)
        yield pk, path, is_sealed or log_store.live_size(path) > seen


def _advance(stream_id: int) -> bool:
    """Read one piece of a log; return whether there is more of it."""
    cursor = MetricsCursor.objects.select_related("stream__attempt").filter(pk=stream_id).first()
    if cursor is None:
        return False
    stream, offset = cursor.stream, cursor.offset
    try:
        part = log_store.read(stream, offset, READ_BYTES)
    except log_store.Unsafe:
        part = log_store.Slice(b"", offset, offset, 0, stream.state)
    is_notice = part.next_offset != part.offset + len(part.data)
    is_end = part.next_offset >= part.size
    if is_notice:
        data, whole = b"", part.next_offset - part.offset
    else:
        whole = _whole_lines(part.data, is_last=is_end and stream.state != LogStream.State.OPEN)
        data = part.data[:whole]
    samples = list(parse(data))
    with transaction.atomic():
        is_ours = MetricsCursor.objects.filter(pk=stream_id, offset=offset).update(
            offset=offset + whole, scanned=part.size if is_end else 0, read_at=Now()
        )
        if not is_ours:
            return False
        if samples:
            series.append(series.Origin.of_log(stream), samples)
            fault("metrics.before_commit")
    if stream.sealed and is_end:
        _finish(stream)
    return not is_end


def _finish(stream: LogStream) -> None:
    """Read what event files still have at the end of a log, and forget how far both were read."""
    event_files.search(stream.pk, stream.live_path)
    while event_files.read_on(MetricsCursor.objects.filter(pk=stream.pk)):
        pass
    with transaction.atomic():
        EventFile.objects.filter(stream=stream).delete()
        MetricsCursor.objects.filter(pk=stream.pk).delete()


def _whole_lines(data: bytes, *, is_last: bool) -> int:
    """Return how many bytes are whole lines; a line that is too long to have metrics is passed over."""
    if is_last:
        return len(data)
    whole = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    return whole if whole or len(data) <= LONGEST_LINE else len(data)
