"""Results of jobs: the last and best value of each metric, and the curves that pages draw.

Callers have checked that the person may read the jobs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.models import Job, TrainingPoints, TrainingSeries
from jobs.training_metrics.series import Bucket, thin

MOST_CHARTS: Final = 12
"""Of a comparison."""

MOST_DRAWN: Final = 400
"""Buckets of a curve."""

DRAWN_DIGITS: Final = 7
"""Significant digits of a value in a chart, whose legend shows six."""

MOST_NAMES: Final = 100
"""Metrics that a list offers as columns."""

_LOWER: Final = re.compile(
    r"(?:.*[^a-z])?(?:loss|error|ppl|perplexity|r?mse|mae|nll|wer|cer|fid)(?:[^a-z].*)?"
)
_HIGHER: Final = re.compile(
    r"(?:.*[^a-z])?(?:acc(?:uracy)?|f1|auc|bleu|rouge\w*|map|m?iou|dice|precision|recall|reward|return|elbo|psnr"
    r"|ssim|score)(?:[^a-z].*)?"
)
_PREFIX: Final = re.compile(r"(?:train|training|val|valid|validation|eval|test)[_/.-]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A metric of a job; `goal` is "min", "max", or "" where its name does not tell what is best."""

    name: str
    axis: str
    role: str
    count: int
    last: float
    last_step: float
    goal: str
    best: float | None
    best_step: float | None

    @property
    def key(self) -> tuple[str, str]:
        """Return what is the same for this metric of every job."""
        return self.name, self.axis


@dataclass(frozen=True, slots=True)
class TrainingChart:
    """Curves that share a chart: `data` is the JSON of `[{label, points: [[step, value], …]}, …]`."""

    id: str
    title: str
    axis: str
    data: str


def goal_of(name: str) -> str:
    """Return "min" or "max" for a metric whose name tells what is best, else ""."""
    lower = name.lower()
    if _LOWER.fullmatch(lower):
        return "min"
    return "max" if _HIGHER.fullmatch(lower) else ""


def list_results(job: Job) -> list[TrainingResult]:
    """Return the results of a job, in the order in which its metrics came up."""
    return [_result(row) for row in TrainingSeries.objects.filter(job=job).order_by("pk")]


def load_results(
    job_ids: Collection[int], names: Collection[str], goals: Mapping[str, str] | None = None
) -> dict[int, dict[str, TrainingResult]]:
    """Return the results of jobs by job and metric; one query, and none without names.

    `goals` are of metrics whose names don't tell what is best.  Of several axes the first counts.
    """
    if not names:
        return {}
    found: dict[int, dict[str, TrainingResult]] = {}
    for row in TrainingSeries.objects.filter(job__in=job_ids, name__in=names).order_by("-pk"):
        found.setdefault(row.job_id, {})[row.name] = _result(row, (goals or {}).get(row.name, ""))
    return found


def list_names(job_ids: Collection[int]) -> list[str]:
    """Return the names of the metrics of these jobs; one query."""
    rows = TrainingSeries.objects.filter(job__in=job_ids).order_by("name")
    return list(rows.values_list("name", flat=True).distinct()[:MOST_NAMES])


def _result(row: TrainingSeries, goal: str = "") -> TrainingResult:
    goal = goal or goal_of(row.name)
    best, step = {
        "min": (row.minimum, row.minimum_step),
        "max": (row.maximum, row.maximum_step),
        "": (None, None),
    }[goal]
    shown = (row.name, row.axis, row.role, row.count, row.last, row.last_step)
    return TrainingResult(*shown, goal, best, step)


def list_curves(job: Job) -> list[tuple[TrainingResult, list[Bucket]]]:
    """Return the results of a job, each with at most MOST_DRAWN buckets of its series."""
    rows = list(TrainingSeries.objects.filter(job=job).order_by("pk"))
    buckets = load_buckets(rows)
    return [(_result(row), thin(buckets.get(row.pk, []), MOST_DRAWN)) for row in rows]


def list_charts(job: Job) -> list[TrainingChart]:
    """Return the charts of a job: training and validation values of a metric share one."""
    rows = list(TrainingSeries.objects.filter(job=job).order_by("pk"))
    buckets = load_buckets(rows)
    groups: dict[tuple[str, str], list[TrainingSeries]] = {}
    for row in rows:
        groups.setdefault((_PREFIX.sub("", row.name), row.axis), []).append(row)
    return [
        _chart(f"{members[0].pk}", title, axis, {row.name: buckets.get(row.pk, []) for row in members})
        for (title, axis), members in groups.items()
    ]


def _chart(key: str, title: str, axis: str, curves: Mapping[str, Sequence[Bucket]]) -> TrainingChart:
    data = [{"label": label, "points": _points(buckets)} for label, buckets in curves.items()]
    return TrainingChart(f"curve-{key}", title, axis, json.dumps(data, separators=(",", ":")))


def load_buckets(rows: Iterable[TrainingSeries]) -> dict[int, list[Bucket]]:
    """Return the buckets of each series; one query."""
    found: dict[int, list[Bucket]] = {}
    chunks = TrainingPoints.objects.filter(series__in=[row.pk for row in rows]).order_by("series", "number")
    for series_id, buckets in chunks.values_list("series_id", "buckets"):
        found.setdefault(series_id, []).extend(buckets)
    return found


def _points(buckets: Sequence[Bucket]) -> list[tuple[float, float]]:
    """Return the points of a curve, as short as JSON has them.

    What lies between two steps comes as its extremes.
    """
    points: list[tuple[float, float]] = []
    for step, last, least, greatest in thin(buckets, MOST_DRAWN):
        if points and least < greatest:
            gap = step - points[-1][0]
            between = (step - 2 * gap / 3, step - gap / 3)
            points += zip(map(round, between) if gap >= 3 else between, (least, greatest), strict=True)
        points.append((step, last))
    return [(_shorten(step), _shorten(float(f"{value:.{DRAWN_DIGITS}g}"))) for step, value in points]


def _shorten(value: float) -> float:
    """Return a whole number as an integer, which JSON writes without a fraction."""
    return int(value) if value % 1 == 0 and abs(value) < 1e15 else value


# --- several jobs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResultCell:
    """The result of one job, if it has that metric; `is_best` of all."""

    result: TrainingResult | None
    is_best: bool


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One metric of several jobs, in their order."""

    name: str
    axis: str
    cells: Sequence[ResultCell]


def compare(jobs: Sequence[Job]) -> tuple[list[ResultRow], list[TrainingChart]]:
    """Return the results of several jobs by metric, and a chart of each metric that two of them have."""
    found: dict[tuple[str, str], dict[int, TrainingSeries]] = {}
    for row in TrainingSeries.objects.filter(job__in=jobs).order_by("name", "axis"):
        found.setdefault((row.name, row.axis), {})[row.job_id] = row
    rows = [_row(key, jobs, by_job) for key, by_job in found.items()]
    shared = [by_job for by_job in found.values() if len(by_job) > 1][:MOST_CHARTS]
    buckets = load_buckets(row for by_job in shared for row in by_job.values())
    charts = []
    for by_job in shared:
        first = next(iter(by_job.values()))
        curves = {
            f"{number}. {job.name}": buckets.get(by_job[job.pk].pk, [])
            for number, job in enumerate(jobs, 1)
            if job.pk in by_job
        }
        charts.append(_chart(f"{first.pk}", first.name, first.axis, curves))
    return rows, charts


def _row(key: tuple[str, str], jobs: Sequence[Job], by_job: Mapping[int, TrainingSeries]) -> ResultRow:
    results = [_result(by_job[job.pk]) if job.pk in by_job else None for job in jobs]
    values = [each.best for each in results if each is not None and each.best is not None]
    pick = min if goal_of(key[0]) == "min" else max
    best = pick(values) if len(values) > 1 else None
    cells = [
        ResultCell(each, each is not None and best is not None and each.best == best) for each in results
    ]
    return ResultRow(*key, cells)
