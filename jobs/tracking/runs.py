"""Commands on the runs of a job, each in a transaction: bounded, and never on another job's."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet

from jobs.models import Job, TrackingExperiment, TrackingRun
from jobs.training_metrics import series
from jobs.training_metrics.output import Sample
from jobs.training_metrics.series import Origin

DEFAULT: Final = "Default"
"""The experiment that every job has."""

MOST_RUNS: Final = 100
MOST_EXPERIMENTS: Final = 20
"""Of a job."""

MOST_NAMES: Final = 200
"""Parameters, tags and metrics of a run, each."""

MOST_TEXT: Final = 256 * 1024
"""Characters of a run's parameters and tags, as JSON."""

AXIS: Final = "step"


class TrackingError(Exception):
    """The request is refused; `code` is one of MLflow's error codes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class Metric:
    """A value of a metric; `timestamp` is in milliseconds since 1970."""

    name: str
    value: float
    timestamp: int
    step: int


def list_experiments(job_id: int) -> list[TrackingExperiment]:
    """Return the experiments of a job besides the default one, in the order of their creation."""
    return list(TrackingExperiment.objects.filter(job_id=job_id).order_by("pk"))


def create_experiment(job_id: int, name: str) -> TrackingExperiment:
    """Create an experiment of a job.  Raises TrackingError."""
    with transaction.atomic():
        _lock_job(job_id)
        names = {each.name for each in list_experiments(job_id)} | {DEFAULT}
        if name in names:
            raise TrackingError("RESOURCE_ALREADY_EXISTS", f"Experiment {name!r} already exists.")
        if len(names) > MOST_EXPERIMENTS:
            raise _limit(f"A job can have at most {MOST_EXPERIMENTS} experiments.")
        return TrackingExperiment.objects.create(job_id=job_id, name=name)


def create_run(
    job_id: int, experiment: TrackingExperiment | None, name: str, start: int, tags: Mapping[str, str]
) -> TrackingRun:
    """Create a run of a job; `experiment` None is the default one.  Raises TrackingError."""
    with transaction.atomic():
        _lock_job(job_id)
        if TrackingRun.objects.filter(job_id=job_id).count() >= MOST_RUNS:
            raise _limit(f"A job can have at most {MOST_RUNS} runs.")
        run = TrackingRun(job_id=job_id, experiment=experiment, name=name, start_time=start)
        _merge(run.tags, tags, "tags")
        _check_size(run)
        run.save()
    return run


def find_run(job_id: int, run_id: str) -> TrackingRun:
    """Return a run of the job.  Raises TrackingError."""
    return _only(TrackingRun.objects.filter(job_id=job_id, run_id=run_id), run_id)


def _lock_run(job_id: int, run_id: str) -> TrackingRun:
    return _only(TrackingRun.objects.select_for_update().filter(job_id=job_id, run_id=run_id), run_id)


def _only(rows: QuerySet[TrackingRun], run_id: str) -> TrackingRun:
    run = rows.first()
    if run is None:
        raise TrackingError("RESOURCE_DOES_NOT_EXIST", f"This job has no run {run_id!r}.")
    return run


def update_run(job_id: int, run_id: str, changes: Mapping[str, str | int]) -> TrackingRun:
    """Change `status`, `end_time` and `name` of a run.  Raises TrackingError."""
    with transaction.atomic():
        run = _lock_run(job_id, run_id)
        for field, value in changes.items():
            setattr(run, field, value)
        run.save(update_fields=[*changes])
    return run


def log(
    origin: Origin,
    run_id: str,
    metrics: Iterable[Metric] = (),
    parameters: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
) -> None:
    """Store what a run logs, all or nothing; finite values join the job's series.  Raises TrackingError.

    A parameter keeps its first value, as MLflow has it.
    """
    given = list(metrics)
    with transaction.atomic():
        run = _lock_run(origin.job_id, run_id)
        for name, value in (parameters or {}).items():
            if run.parameters.get(name, value) != value:
                text = f"Parameter {name!r} already has the value {run.parameters[name]!r}."
                raise TrackingError("INVALID_PARAMETER_VALUE", text)
        _merge(run.parameters, parameters or {}, "parameters")
        _merge(run.tags, tags or {}, "tags")
        latest = {each.name: each for each in sorted(given, key=lambda each: (each.step, each.timestamp))}
        _merge(run.metrics, {name: _stored(each) for name, each in latest.items()}, "metrics")
        _check_size(run)
        run.save(update_fields=["parameters", "tags", "metrics"])
        samples = [
            Sample(each.name, AXIS, each.step, each.value) for each in given if math.isfinite(each.value)
        ]
        if samples:
            series.append(origin, samples)


def compare_parameters(jobs: Sequence[Job]) -> list[tuple[str, list[str | None]]]:
    """Return each parameter that a run of these jobs logged, with its value in each job; one query.

    Of several runs of a job the last counts.  The caller has checked that the person may read the jobs.
    """
    found: dict[int, dict[str, str]] = {}
    for job_id, values in (
        TrackingRun.objects.filter(job__in=jobs).order_by("pk").values_list("job_id", "parameters")
    ):
        found.setdefault(job_id, {}).update(values)
    names = sorted({name for values in found.values() for name in values})
    return [(name, [found.get(job.pk, {}).get(name) for job in jobs]) for name in names]


def _lock_job(job_id: int) -> None:
    """Let one command at a time add to a job."""
    Job.objects.select_for_update(no_key=True).get(pk=job_id)


def _stored(metric: Metric) -> dict[str, float | int | str]:
    """Return a metric as JSON has it; what JSON has no number for has Protocol Buffers' words."""
    words = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return {
        "value": words.get(str(metric.value), metric.value),
        "timestamp": metric.timestamp,
        "step": metric.step,
    }


def _merge(known: dict[str, Any], given: Mapping[str, Any], kind: str) -> None:
    known.update(given)
    if len(known) > MOST_NAMES:
        raise _limit(f"A run can have at most {MOST_NAMES} {kind}.")


def _check_size(run: TrackingRun) -> None:
    if len(json.dumps([run.parameters, run.tags])) > MOST_TEXT:
        raise _limit(f"Parameters and tags of a run can have at most {MOST_TEXT} characters.")


def _limit(text: str) -> TrackingError:
    return TrackingError("RESOURCE_LIMIT_EXCEEDED", text)
