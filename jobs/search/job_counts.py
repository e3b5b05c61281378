"""How many jobs a query finds, which lists of vendors tell with each page."""

from __future__ import annotations

import hashlib
from typing import Final

from django.core.cache import cache
from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from jobs.models import Job

LARGE: Final = 10_000
"""A number that is not counted again at once: a database walks through all that it counts."""

KEPT_S: Final = 10
"""Seconds for which a large number is kept."""


def count_jobs(rows: QuerySet[Job]) -> int:
    """Return how many jobs a query finds, for which a large number may be `KEPT_S` old."""
    try:
        text = repr(rows.order_by().values("pk").query.sql_with_params())
    except EmptyResultSet:
        return 0
    name = f"jobs-counted:{hashlib.sha256(text.encode()).hexdigest()}"
    kept: int | None = cache.get(name)
    if kept is not None:
        return kept
    counted = rows.count()
    if counted >= LARGE:
        cache.set(name, counted, KEPT_S)
    return counted
