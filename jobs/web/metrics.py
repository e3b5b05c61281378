"""What a job's replicas were measured to use in the last hour."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils import timezone

from jobs.models import Job, TaskUse

MOST_REPLICAS: Final = 16
HOUR_S: Final = 3600
STEP_S: Final = 60


@dataclass(frozen=True, slots=True)
class Metrics:
    """The newest figures of the first replicas, and their charts as JSON; "" where nothing is to be drawn."""

    uses: Sequence[TaskUse]
    more: int
    gpu_chart: str
    cpu_chart: str


def shown(job: Job) -> Metrics:
    """The replicas of the current run."""
    rows = TaskUse.objects.filter(
        task__attempt__job=job, task__attempt__number=job.attempt_number, task__run=job.run_number
    )
    uses = list(rows.select_related("task").order_by("task__ordinal")[:MOST_REPLICAS])
    count = rows.count() if len(uses) == MOST_REPLICAS else len(uses)
    until = (job.ended_at or timezone.now()).timestamp()
    return Metrics(uses, count - len(uses), _chart(uses, 1, until), _chart(uses, 2, until))


def _chart(uses: Sequence[TaskUse], column: int, until: float) -> str:
    """Percent minute by minute; what did not change was not written down, and is drawn on."""
    series = {str(use.task): _minutes(use.points, column, until) for use in uses}
    drawn = {name: points for name, points in series.items() if points}
    return json.dumps(drawn) if drawn else ""


def _minutes(points: Sequence[Sequence[float | None]], column: int, until: float) -> list[list[float]]:
    known = [(at, point[column]) for point in points if (at := point[0]) is not None]
    if all(value is None for _at, value in known):
        return []
    found, begin = [], int(until - HOUR_S) // STEP_S * STEP_S
    for at in range(begin, int(until) + 1, STEP_S):
        value = next((value for when, value in reversed(known) if when < at + STEP_S), None)
        if value is not None:
            found.append([float(at), value])
    return found
