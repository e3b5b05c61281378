"""Limits of the streams, requests and transfers that are open at a time in this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Final

from django.conf import settings

from jobs.live import timings

RETRY_AFTER_S: Final = 10

EVERYBODY: Final = 0
"""The key of a limit for all people together; a person's key is their primary key."""


class LimitReached(Exception):
    """As many are open as may be."""


class ConnectionLimit:
    """Counts what is open, by person; requests of several threads ask at the same time."""

    def __init__(self) -> None:
        self._open: Counter[int] = Counter()
        self._lock = Lock()

    @contextmanager
    def hold(self, person: int, most: int, refusal: Exception | None = None) -> Iterator[None]:
        """Count one more of `person`.  Raises `refusal`, or LimitReached, where there are `most`."""
        with self._lock:
            if self._open[person] >= most:
                raise refusal or LimitReached
            self._open[person] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[person] -= 1
                if not self._open[person]:
                    del self._open[person]


streams: Final = ConnectionLimit()
"""Streams of events of this process."""


def hold_stream(user_id: int) -> ExitStack:
    """Count a stream of the person until the result is closed; closing it again does nothing.

    A response that is never sent is never closed: then it ends once the result is garbage.  Raises
    LimitReached.
    """
    held = ExitStack()
    held.enter_context(streams.hold(user_id, settings.CONSOLE_STREAMS_PER_PERSON))
    held.enter_context(_count_open())
    return held


@contextmanager
def _count_open() -> Iterator[None]:
    timings.open_streams().inc()
    try:
        yield
    finally:
        timings.open_streams().dec()
