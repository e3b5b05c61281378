"""Searches that no index answers, in windows of keys and within a time.

A part of a name, a command or a count is compared row by row.  A search therefore reads the jobs in windows
of keys, from the page's edge on, and ends when the page is full, when all jobs are read, or when its time is
over; in the last case the next page goes on from there.  Where few rows have to be read the windows grow
quickly, so that a small workspace is searched whole however many jobs others have.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db.models import Q

from jobs.models import Job

FIRST_WINDOW: Final = 5_000
"""Keys of the first window."""

GROWTH: Final = 4
QUICK_S: Final = 0.01
"""After a window that took less, the next one is GROWTH times as large."""

SEARCH_S: Final = 0.08
"""After so many seconds no further window is read."""


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """Keys of jobs in the order of the list.

    `searched_to` is the key of the last job that was read where the time was over before all were.
    """

    keys: list[int]
    searched_to: int | None = None


def search_keys(
    read: Callable[[Q, int], list[int]], size: int, edge: int | None, *, descending: bool
) -> FoundKeys:
    """Return the first `size` keys behind `edge` that `read` finds.

    `read` takes a condition on keys and how many are wanted.  Reads one window at least, and begins none
    after SEARCH_S.
    """
    newest = Job.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    begun, window, keys = time.monotonic(), FIRST_WINDOW, list[int]()
    at = edge if edge is not None else newest + 1 if descending else 0
    while True:
        started = time.monotonic()
        to = at - window if descending else at + window
        inside = Q(pk__lt=at, pk__gte=to) if descending else Q(pk__gt=at, pk__lte=to)
        keys += read(inside, size - len(keys))
        if len(keys) >= size or (to <= 0 if descending else to >= newest):
            return FoundKeys(keys)
        now = time.monotonic()
        if now - begun > SEARCH_S:
            return FoundKeys(keys, to)
        window *= GROWTH if now - started < QUICK_S else 1
        at = to
