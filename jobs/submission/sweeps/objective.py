"""The objective of a sweep: the metric whose least or greatest value makes a job the best."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.models import Sweep, SweepRun
from jobs.training_metrics import results
from jobs.training_metrics.results import TrainingResult

LONGEST: Final = 250
"""Characters of a metric's name."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric and its goal, "min" or "max".

    With `stop_after` the median rule stops jobs early from that step on, once `stop_jobs` others got as far.
    """

    metric: str
    goal: str
    stop_after: float | None = None
    stop_jobs: int = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """A job of a sweep with its results by metric; `is_best` of all by the objective."""

    run: SweepRun
    results: Mapping[str, TrainingResult]
    is_best: bool


def list_trials(sweep: Sweep, runs: Sequence[SweepRun], metrics: Collection[str] = ()) -> list[Trial]:
    """Return the jobs of a sweep with their results for the objective and `metrics`; at most one query.

    The first of equal ones is the best.
    """
    names = {*metrics, sweep.objective} - {""}
    found = results.load_results([run.job_id for run in runs], names, {sweep.objective: sweep.goal})
    values = {
        run.pk: result.best
        for run in runs
        if (result := found.get(run.job_id, {}).get(sweep.objective)) and result.best is not None
    }
    pick = min if sweep.goal == Sweep.Goal.MIN else max
    best = pick(values, key=lambda pk: values[pk]) if values else None
    return [Trial(run, found.get(run.job_id, {}), run.pk == best) for run in runs]
