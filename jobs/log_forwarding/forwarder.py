"""A pass of the forwarder: each sink that is due gets its batches, one after the other, beside the others.

A worker leases a sink, stores what its batch is made of, posts it outside any transaction, in a thread of its
own, and then moves the offsets.  One that is killed after the post and before that leaves the same batch for
the next one: at least once, in order.  A sink that does not answer in the time of a pass holds its lease, and
no worker: its thread takes the answer down.
"""

from __future__ import annotations

import base64
import secrets
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

import structlog
from django.db import connections, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Least, Now
from django.utils.crypto import get_random_string

from jobs.faults import fault
from jobs.log_forwarding import batches
from jobs.log_forwarding.batches import Batch, LogWindow
from jobs.log_forwarding.formats import FORMATS, PostOutcome
from jobs.log_forwarding.positions import find_due
from jobs.models import LogCursor, LogSink
from jobs.models.log_sinks import MOST_RECORDS
from jobs.outbound import egress
from jobs.outbound.addresses import AddressError
from quotas.encryption import Unreadable

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=45)
"""Of one batch; longer than a request may take."""

AT_ONCE: Final = 8
PASS_S: Final = 5.0
"""Seconds after which a pass begins no more batches, and waits for none: the worker has other tasks."""

FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(minutes=5)
MOST_ANSWER: Final = 4 * 1024 * 1024
"""Bytes; Elasticsearch answers with an object for each record."""

TEST_TEXT: Final = "Test from Job Console"


@dataclass(frozen=True, slots=True)
class Post:
    """A request to a leased sink: a batch, or a test if there is none."""

    sink: LogSink
    batch: Batch | None
    body: bytes


def forward() -> bool:
    """Send what is new to the sinks that are due; return whether another pass has something to do at once.

    Without anything new it costs one query.
    """
    due = find_due()
    deadline = time.monotonic() + PASS_S
    is_more = len(due) > AT_ONCE
    pool = ThreadPoolExecutor(AT_ONCE)
    running: dict[Future[PostOutcome], Post] = {}
    for sink_id in due[:AT_ONCE]:
        if post := _begin(sink_id):
            running[pool.submit(_send, post)] = post
    while running:
        done, _others = wait(running, max(0.0, deadline - time.monotonic()), FIRST_COMPLETED)
        if not done:
            break
        for future in done:
            post = running.pop(future)
            if not _apply(post, future.result()):
                continue
            if time.monotonic() > deadline:
                is_more = True
                _release(post.sink)
            elif following := _next(post.sink):
                running[pool.submit(_send, following)] = following
    for future, post in running.items():
        future.add_done_callback(partial(_apply_late, post, threading.get_ident()))
    pool.shutdown(wait=False)
    return is_more


def _apply_late(post: Post, of_pass: int, future: Future[PostOutcome]) -> None:
    """Record an answer that came after the pass, which had the thread `of_pass`; give the lease back."""
    try:
        if _apply(post, future.result()):
            _release(post.sink)
    finally:
        if threading.get_ident() != of_pass:
            connections.close_all()


# --- leases ----------------------------------------------------------------------------------------------


def _begin(sink_id: int) -> Post | None:
    """Lease a sink, and return its first request; None where another worker has it, or nothing is to send."""
    token = get_random_string(16)
    free = LogSink.objects.filter(Q(lease_until=None) | Q(lease_until__lt=Now()), pk=sink_id)
    if not free.update(lease_token=token, lease_until=Now() + LEASE):
        return None
    sink = LogSink.objects.select_related("workspace").get(pk=sink_id)
    return _next(sink)


def _own_row(sink: LogSink) -> QuerySet[LogSink]:
    """Return the sink's row, as long as its lease is ours."""
    return LogSink.objects.filter(pk=sink.pk, lease_token=sink.lease_token)


def _release(sink: LogSink, **columns: Any) -> None:
    """Give the lease back; the sink is due again after those that wait longer."""
    _own_row(sink).update(**{"lease_token": "", "lease_until": None, "due_at": Now(), **columns})


# --- requests --------------------------------------------------------------------------------------------


def _next(sink: LogSink) -> Post | None:
    """Return the sink's next request; release it where there is nothing to send."""
    if sink.test_requested_at is not None:
        return Post(sink, None, batches.encode_test(sink, TEST_TEXT))
    if sink.enabled and LogSink.objects.filter(pk=sink.pk, enabled=True, due_at__lte=Now()).exists():
        batch = batches.build(sink)
        if not _store(sink, batch):
            return None
        if batch.body:
            return Post(sink, batch, batch.body)
    _own_row(sink).update(lease_token="", lease_until=None)
    return None


@transaction.atomic
def _store(sink: LogSink, batch: Batch) -> bool:
    """Store what the batch is made of, before it is sent; False where the lease was lost."""
    if not _own_row(sink).update(lease_until=Now() + LEASE):
        return False
    filled = [window for window in batch.windows if window.encoded]
    empty = [window for window in batch.windows if not window.encoded]
    for window in batch.windows:
        window.cursor.scanned = window.scanned
        window.cursor.batch_end = window.end if window.encoded else None
    _save([window.cursor for window in filled], "scanned", "batch_end", "batch_at")
    _move(empty)
    return True


def _save(cursors: list[LogCursor], *columns: str) -> None:
    LogCursor.objects.bulk_update(cursors, columns, batch_size=200)


def _move(windows: list[LogWindow]) -> None:
    """Move the offsets behind windows; a log that has ended needs no cursor any more."""
    LogCursor.objects.filter(pk__in=[each.cursor.pk for each in windows if each.is_last]).delete()
    rest = [window for window in windows if not window.is_last]
    for window in rest:
        window.cursor.offset = window.end
        window.cursor.batch_end = None
    _save([window.cursor for window in rest], "offset", "scanned", "batch_end")


def _send(post: Post) -> PostOutcome:
    """Post one request, in a thread, without the database."""
    sink, chosen = post.sink, FORMATS[post.sink.format]
    try:
        headers = {
            "Content-Type": chosen.content_type,
            "User-Agent": "Job-Console",
            **_authorization(sink),
        }
        fault("forward.before_post")
        answer = egress.request("POST", sink.url, headers=headers, body=post.body, most=MOST_ANSWER)
        fault("forward.after_post")
    except AddressError as error:
        return PostOutcome(error.code, error.detail)
    except Unreadable:
        return PostOutcome("credential")
    return chosen.read_answer(answer, len(post.batch.lines) if post.batch else 1)


def _authorization(sink: LogSink) -> dict[str, str]:
    """Return the header with the sink's credential.  Raises Unreadable."""
    if sink.auth == LogSink.Auth.BEARER:
        return {"Authorization": f"Bearer {sink.credential()}"}
    if sink.auth == LogSink.Auth.BASIC:
        pair = f"{sink.username}:{sink.credential()}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


# --- answers ---------------------------------------------------------------------------------------------


@transaction.atomic
def _apply(post: Post, outcome: PostOutcome) -> bool:
    """LogEntry what an answer means; return whether the sink may get its next request, still leased."""
    sink = post.sink
    if post.batch is None:
        return _apply_test(sink, outcome)
    if outcome.is_accepted:
        return _accept(sink, post.batch, outcome)
    log.info("logs_not_sent", sink=sink.pk, error=outcome.error, detail=outcome.detail)
    if not _own_row(sink).update(lease_until=Now() + LEASE):
        return False
    pause = max(_pause(sink.failures), timedelta(seconds=outcome.pause_s))
    columns = {**_failure(outcome), "failures": F("failures") + 1, "due_at": Now() + pause}
    if outcome.is_refused:
        columns |= _refuse(sink, post.batch)
    _release(sink, **columns)
    return False


def _apply_test(sink: LogSink, outcome: PostOutcome) -> bool:
    sink.test_requested_at = None
    return bool(
        _own_row(sink).update(
            test_requested_at=None,
            tested_at=Now(),
            test_error=outcome.error,
            test_detail=outcome.detail[:300],
        )
    )


def _accept(sink: LogSink, batch: Batch, outcome: PostOutcome) -> bool:
    """Move the offsets; the records that were rejected for good are dropped, and counted."""
    lines = batch.lines
    dropped = sum(lines[at].end - lines[at].offset for at in outcome.rejected)
    columns = {
        "failures": 0,
        "batch_records": Least(F("batch_records") * 2, MOST_RECORDS),
        "sent_at": Now(),
        "dropped_bytes": F("dropped_bytes") + dropped,
        **(_failure(outcome) if outcome.error else {}),
    }
    if not _own_row(sink).update(**columns):
        return False
    sink.failures = 0
    sink.batch_records = min(sink.batch_records * 2, MOST_RECORDS)
    _move([window for window in batch.windows if window.encoded])
    return True


def _refuse(sink: LogSink, batch: Batch) -> dict[str, Any]:
    """Halve the next batch, which gets a new time; drop a record that was refused alone, and count it."""
    windows = [window for window in batch.windows if window.encoded]
    if sink.batch_records == 1:
        _move(windows)
        size = sum(line.end - line.offset for line in batch.lines)
        return {"dropped_bytes": F("dropped_bytes") + size}
    for window in windows:
        window.cursor.batch_end, window.cursor.scanned = None, 0
    _save([window.cursor for window in windows], "batch_end", "scanned")
    return {"batch_records": max(1, sink.batch_records // 2)}


def _failure(outcome: PostOutcome) -> dict[str, Any]:
    return {
        "errors": F("errors") + 1,
        "error": outcome.error,
        "detail": outcome.detail[:300],
        "error_at": Now(),
    }


def _pause(failures: int) -> timedelta:
    """Return the pause after so many failures and one more: 1 s, 2 s … 5 min, half of it random."""
    most: timedelta = min(FIRST_PAUSE * (1 << min(failures, 20)), LONGEST_PAUSE)
    return most / 2 + most * (secrets.randbelow(1000) / 2000)
