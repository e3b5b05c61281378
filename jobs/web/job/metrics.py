"""Metrics of a job: what its replicas use, as charts of the whole run, and in a sentence afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.messages import amounts
from jobs.models import Job, JobFile, ReplicaUsage
from jobs.models.usage import Sample
from jobs.scheduling.usage_samples import RATE_DIGITS
from jobs.spec import JobSpec, RoleSpec
from jobs.tracking.runs import compare_parameters
from jobs.training_metrics.results import TrainingChart, TrainingResult, list_charts, list_results
from jobs.web.job.replicas import find_stragglers

MOST_MEASURED: Final = 16
"""Replicas of a chart."""

STEPS: Final = 120
SHORTEST_STEP_S: Final = 60

Series = list[list[float]]
"""Pairs of a time and a value."""

_RATES: Final = range(Sample._fields.index("disk_read"), len(Sample._fields))


@dataclass(frozen=True, slots=True)
class UsageChart:
    """A chart over the whole run: its title and unit, and as JSON the series by their labels."""

    key: str
    title: str
    unit: str
    series: str


@dataclass(frozen=True, slots=True)
class ReplicaMeasurement:
    """The newest figures of a replica; disk and network in MiB a second, None where that is unknown."""

    use: ReplicaUsage
    is_slow: bool
    last: Sample


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums of the newest figures of all replicas shown."""

    cpu_milli: float | None
    memory_mib: float | None
    rates: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Metrics:
    """The newest figures of the first replicas, their sums where there are several, and charts."""

    measurements: Sequence[ReplicaMeasurement] = ()
    more: int = 0
    totals: Totals | None = None
    charts: Sequence[UsageChart] = ()
    has_transfers: bool = False


@dataclass(frozen=True, slots=True)
class Training:
    """The training metrics of a job, their charts, and the parameters that its runs logged."""

    results: Sequence[TrainingResult]
    charts: Sequence[TrainingChart]
    parameters: Sequence[tuple[str, Sequence[str | None]]]


def list_training(job: Job) -> Training:
    """Return what the job printed and logged."""
    return Training(list_results(job), list_charts(job), compare_parameters([job]))


def collect_metrics(job: Job) -> Metrics:
    """Return the measurements of the current run's first replicas."""
    uses, count = _find_uses(job)
    if not uses:
        return Metrics()
    slow = find_stragglers(job, job.attempt_number)
    measurements = [
        ReplicaMeasurement(use, (use.replica.role, use.replica.index) in slow, _last(use)) for use in uses
    ]
    rates = [_sum(each.last[at] for each in measurements) for at in _RATES]
    totals = Totals(_sum(use.cpu_milli for use in uses), _sum(use.memory_mib for use in uses), rates)
    return Metrics(
        measurements,
        count - len(uses),
        totals if len(uses) > 1 else None,
        [chart for chart in _draw(job, measurements) if chart.series],
        any(rate is not None for rate in rates),
    )


def _last(use: ReplicaUsage) -> Sample:
    return use.samples[-1] if use.points else Sample(use.at.timestamp(), None, None)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _draw(job: Job, measurements: Sequence[ReplicaMeasurement]) -> Iterator[UsageChart]:
    """Yield a chart of each metric; disk and network also with the sum of several replicas."""
    roles = {role.name: role for role in JobFile.objects.get(job=job).spec.roles}
    until = (job.ended_at or timezone.now()).timestamp()
    requested = [
        roles[each.use.replica.role].resources for each in measurements if each.use.replica.role in roles
    ]

    def series(value: Callable[[Sample], float | None]) -> dict[str, Series]:
        return {
            _label(each): points
            for each in measurements
            if (points := _resample(each.use.samples, value, until))
        }

    percent = _("percent of one core")
    cpu = {each.cpu_milli / 10 for each in requested}
    memory: set[float] = {each.memory_mib for each in requested}
    gpus = series(lambda sample: sample.gpu)
    yield UsageChart("gpu", _("GPU utilization"), _("percent; busiest GPU of each replica"), _render(gpus))
    yield UsageChart("cpu", _("CPU utilization"), percent, _render(series(lambda each: each.cpu), cpu))
    yield UsageChart("memory", _("Memory"), "MiB", _render(series(lambda each: each.memory_mib), memory))
    for key, title, value in (
        ("disk-read", _("Disk read"), lambda each: each.disk_read),
        ("disk-written", _("Disk written"), lambda each: each.disk_written),
        ("received", _("Network received"), lambda each: each.received),
        ("sent", _("Network sent"), lambda each: each.sent),
    ):
        yield UsageChart(key, title, "MiB/s", _render(_with_total(series(value))))


def _label(measurement: ReplicaMeasurement) -> str:
    name = str(measurement.use.replica)
    return _("%(replica)s (straggler)") % {"replica": name} if measurement.is_slow else name


def _with_total(series: Mapping[str, Series]) -> dict[str, Series]:
    """Add the sum at each time, where there are several series."""
    if len(series) < 2:
        return dict(series)
    sums: dict[float, float] = {}
    for points in series.values():
        for at, value in points:
            sums[at] = sums.get(at, 0) + value
    return {**series, _("total"): [[at, round(sums[at], RATE_DIGITS)] for at in sorted(sums)]}


def describe_usage(job: Job, spec: JobSpec) -> dict[str, str]:
    """Return by role what a replica used of what it requested; only roles that were measured."""
    uses, _count = _find_uses(job)
    measured = [use for use in uses if len(use.points) > 1]
    by_role = [
        (role, [use.samples for use in measured if use.replica.role == role.name]) for role in spec.roles
    ]
    return {role.name: _describe(role, found) for role, found in by_role if found}


def _find_uses(job: Job) -> tuple[list[ReplicaUsage], int]:
    """Return the first of them, and how many there are."""
    rows = ReplicaUsage.objects.filter(
        replica__attempt__job=job, replica__attempt__number=job.attempt_number, replica__run=job.run_number
    )
    uses = list(rows.select_related("replica").order_by("replica__ordinal")[:MOST_MEASURED])
    return uses, rows.count() if len(uses) == MOST_MEASURED else len(uses)


def _describe(role: RoleSpec, replicas: Sequence[Sequence[Sample]]) -> str:
    parts = []
    cpus = [value for samples in replicas if (value := _mean(samples, lambda each: each.cpu)) is not None]
    if cpus:
        words = {
            "percent": _percent(max(cpus) * 10, role.resources.cpu_milli),
            "cores": amounts.quantity("cpu_milli", role.resources.cpu_milli),
        }
        parts.append(_("%(percent)s%% of %(cores)s") % words)
    memory = [each.memory_mib for samples in replicas for each in samples if each.memory_mib is not None]
    if memory:
        parts.append(
            _("at most %(used)s of %(requested)s")
            % {
                "used": amounts.memory(max(memory)),
                "requested": amounts.memory(role.resources.memory_mib),
            }
        )
    gpus = [value for samples in replicas if (value := _mean(samples, lambda each: each.gpu)) is not None]
    if gpus:
        parts.append(_("busiest GPU %(percent)s%%") % {"percent": round(max(gpus))})
    return " · ".join(parts)


def _percent(used: float, requested: float) -> int:
    return round(100 * used / requested) if requested else 0


def _mean(samples: Sequence[Sample], value: Callable[[Sample], float | None]) -> float | None:
    """Return the mean by time; the first sample has no time."""
    spans = [
        (found, after.at - before.at)
        for before, after in pairwise(samples)
        if (found := value(after)) is not None
    ]
    whole = sum(span for _value, span in spans)
    return sum(found * span for found, span in spans) / whole if whole > 0 else None


def _render(series: Mapping[str, Series], requested: Collection[float] = ()) -> str:
    """Return the chart's JSON, with a line for what each replica requested where that is the same for all."""
    if not series:
        return ""
    drawn = dict(series)
    if len(requested) == 1:
        times = sorted({point[0] for points in drawn.values() for point in points})
        drawn[_("requested")] = [[at, *requested] for at in times]
    return json.dumps(drawn, separators=(",", ":"))


def _resample(samples: Sequence[Sample], value: Callable[[Sample], float | None], until: float) -> Series:
    """Return values at common times; a sample holds until the next."""
    known = [(sample.at, found) for sample in samples if (found := value(sample)) is not None]
    if not known:
        return []
    step = max(SHORTEST_STEP_S, -(-int(until - samples[0].at) // (STEPS * 60)) * 60)
    resampled: Series = []
    position = 0
    for at in range(int(known[0][0]) // step * step, int(until) + 1, step):
        while position + 1 < len(known) and known[position + 1][0] < at + step:
            position += 1
        if known[position][0] < at + step:
            resampled.append([at, known[position][1]])
    return resampled
