"""Storage of series: at most MOST_BUCKETS buckets each, with the last, least and greatest value of each.

When a series would have more, neighbours are merged in pairs, so that a value is merged once for each
doubling.  Appending reads and writes the last chunk of a series alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from django.db.models import F
from django.utils import timezone

from jobs.models import LogStream, TrainingPoints, TrainingSeries
from jobs.training_metrics.output import Sample

MOST_SERIES: Final = 50
"""Of a job; later names are ignored."""

MOST_BUCKETS: Final = 2000
CHUNK: Final = 125
"""Buckets of a row."""

Bucket = list[float]
"""[step, last value, least, greatest]; the step is that of the last value."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where samples come from: a role of a job in one run of one attempt, and how it gave them."""

    job_id: int
    role: str
    attempt: int
    run: int
    source: TrainingSeries.Source

    @classmethod
    def of_log(cls, stream: LogStream, source: TrainingSeries.Source = TrainingSeries.Source.OUTPUT) -> Self:
        """Return the origin of what a log's replica writes."""
        return cls(stream.attempt.job_id, stream.role, stream.attempt.number, stream.run, source)


def merge(buckets: Sequence[Bucket]) -> Bucket:
    """Return one bucket for neighbours."""
    last = buckets[-1]
    return [last[0], last[1], min(each[2] for each in buckets), max(each[3] for each in buckets)]


def thin(buckets: Sequence[Bucket], most: int) -> list[Bucket]:
    """Return at most `most` buckets, of as many neighbours each."""
    size = -(-len(buckets) // most)
    if size <= 1:
        return list(buckets)
    return [merge(buckets[at : at + size]) for at in range(0, len(buckets), size)]


class Appender:
    """A series to which samples are added; `save` what it collected afterwards."""

    def __init__(self, row: TrainingSeries, tail: list[Bucket]) -> None:
        self.row = row
        self.buckets = tail
        self.first = max(0, row.chunks - 1)
        """The number of the first chunk that `buckets` has."""

    def follow(self, origin: Origin) -> bool:
        """Tell whether the series is of this role and source, and go on in its attempt and run."""
        row = self.row
        if (row.role, row.source) != (origin.role, origin.source):
            return False
        if (row.attempt, row.run) != (origin.attempt, origin.run):
            row.attempt, row.run = origin.attempt, origin.run
            row.base = 0
            self._is_resumed = bool(row.axis and row.count)
        return True

    _is_resumed = False
    """The next sample is the first of a new run: it replaces the points from its step on."""

    def add(self, sample: Sample) -> None:
        """Add a sample."""
        row = self.row
        if self._is_resumed:
            self._is_resumed = False
            self._rewind(sample.step)
        x, value = self._place(sample), sample.value
        if not row.count or value < row.minimum:
            row.minimum, row.minimum_step = value, x
        if not row.count or value > row.maximum:
            row.maximum, row.maximum_step = value, x
        row.count += 1
        row.last, row.last_step = value, x
        if 0 < row.fill < row.stride:
            self.buckets[-1] = merge((self.buckets[-1], [x, value, value, value]))
            row.fill += 1
            return
        self.buckets.append([x, value, value, value])
        row.fill = 1
        if self.first * CHUNK + len(self.buckets) > MOST_BUCKETS:
            self._halve()

    def _place(self, sample: Sample) -> float:
        """Return where a sample belongs on the axis; steps that begin again in a log are counted on."""
        row = self.row
        if not row.axis:
            return float(row.count + 1)
        if row.count and sample.step < (row.last_step - row.base) / 2:
            row.base = row.last_step + 1 - sample.step
        x = row.base + sample.step
        return max(x, row.last_step) if row.count else x

    def _load(self) -> None:
        """Load the chunks before those that `buckets` has."""
        if self.first:
            rows = TrainingPoints.objects.filter(series=self.row, number__lt=self.first).order_by("number")
            self.buckets[:0] = [bucket for row in rows for bucket in row.buckets]
            self.first = 0

    def _halve(self) -> None:
        """Merge pairs; the newest bucket, with its first point, stays alone."""
        self._load()
        self.buckets = [merge(self.buckets[at : at + 2]) for at in range(0, len(self.buckets), 2)]
        self.row.stride *= 2

    def _rewind(self, step: float) -> None:
        """Remove the points from a step on."""
        row = self.row
        if step > row.last_step:
            return
        self._load()
        self.buckets = [bucket for bucket in self.buckets if bucket[0] < step]
        row.count = min(row.count, row.stride * len(self.buckets))
        row.fill = row.stride if self.buckets else 0
        if not self.buckets:
            row.stride = 1
            return
        least = min(self.buckets, key=lambda bucket: bucket[2])
        greatest = max(self.buckets, key=lambda bucket: bucket[3])
        row.minimum, row.minimum_step = least[2], least[0]
        row.maximum, row.maximum_step = greatest[3], greatest[0]
        row.last_step, row.last = self.buckets[-1][:2]

    def chunks(self) -> list[TrainingPoints]:
        """Return the chunks to store, and count all of them."""
        pieces = [self.buckets[at : at + CHUNK] for at in range(0, len(self.buckets), CHUNK)]
        self.row.chunks = self.first + len(pieces)
        return [
            TrainingPoints(series=self.row, number=number, buckets=piece)
            for number, piece in enumerate(pieces, self.first)
        ]


def append(origin: Origin, samples: Iterable[Sample]) -> None:
    """Append samples to the series of their job; call it in a transaction."""
    job_id = origin.job_id
    rows = list(TrainingSeries.objects.select_for_update().filter(job_id=job_id).order_by("pk"))
    tails = TrainingPoints.objects.filter(series__job_id=job_id, number=F("series__chunks") - 1)
    buckets = {tail.series_id: tail.buckets for tail in tails}
    known = {(row.name, row.axis): Appender(row, buckets.get(row.pk, [])) for row in rows}
    changed: dict[int, Appender] = {}
    for sample in samples:
        key = (sample.name, sample.axis)
        appender = known.get(key)
        if appender is None:
            if len(known) >= MOST_SERIES:
                continue
            appender = known[key] = Appender(_new_row(origin, sample), [])
        if id(appender) not in changed:
            if not appender.follow(origin):
                continue
            changed[id(appender)] = appender
        appender.add(sample)
    _save(list(changed.values()))


def _new_row(origin: Origin, sample: Sample) -> TrainingSeries:
    return TrainingSeries(
        job_id=origin.job_id,
        name=sample.name,
        axis=sample.axis,
        role=origin.role,
        source=origin.source,
        attempt=origin.attempt,
        run=origin.run,
    )


_COLUMNS: Final = (
    *("attempt", "run", "count", "stride", "fill", "chunks", "base", "last", "last_step", "minimum"),
    *("minimum_step", "maximum", "maximum_step", "changed_at"),
)


def _save(changed: Sequence[Appender]) -> None:
    before = {each.row.pk: each.row.chunks for each in changed if each.row.pk}
    points = [chunk for each in changed for chunk in each.chunks()]
    for each in changed:
        each.row.changed_at = timezone.now()
    TrainingSeries.objects.bulk_create([each.row for each in changed if not each.row.pk])
    TrainingSeries.objects.bulk_update([each.row for each in changed if each.row.pk in before], _COLUMNS)
    for chunk in points:
        chunk.series_id = chunk.series.pk
    TrainingPoints.objects.bulk_create(
        points, update_conflicts=True, unique_fields=["series", "number"], update_fields=["buckets"]
    )
    for each in changed:
        if each.row.chunks < before.get(each.row.pk, 0):
            TrainingPoints.objects.filter(series=each.row, number__gte=each.row.chunks).delete()
