"""From the log of a job to its series: each byte once, in bounded rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, Settings

from jobs import training_metrics
from jobs.lifecycle.transitions import new_attempt
from jobs.logs import log_store
from jobs.models import Job, LogStream, MetricsCursor, TrainingPoints, TrainingSeries
from jobs.spec import RoleSpec
from jobs.states import State
from jobs.training_metrics import collection, output, series
from jobs.training_metrics.output import Sample
from jobs.training_metrics.series import MOST_BUCKETS, MOST_SERIES, Appender
from tests.factories import attempt_of, make_job, make_replica, make_spec

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> None:
    settings.CONSOLE_SHARED_FOLDER = tmp_path
    logs = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": tmp_path / "logs"},
    }
    settings.STORAGES = settings.STORAGES | {"logs": logs}


def start(*roles: str) -> Job:
    """A running job whose logs are read."""
    spec = make_spec(
        roles=tuple(RoleSpec(name=name, command="train", replicas=2) for name in roles or ["main"])
    )
    job = make_job(State.RUNNING, spec=spec)
    follow(job)
    return job


def follow(job: Job) -> None:
    for stream in LogStream.objects.filter(attempt=attempt_of(job)):
        path = path_of(job, stream.role, stream.index)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        LogStream.objects.filter(pk=stream.pk).update(live_path=log_store.relative_to_root(str(path)))
    training_metrics.follow([attempt_of(job)], 1)


def path_of(job: Job, role: str = "main", index: int = 0) -> Path:
    return log_store.jobs_root() / job.public_id / str(job.attempt_number) / f"{role}-{index}"


def write(job: Job, text: str, role: str = "main", index: int = 0) -> None:
    with path_of(job, role, index).open("a") as file:
        file.write(text)


def lines(steps: Any, name: str = "loss") -> str:
    return "".join(f"step={step} {name}={step / 10}\n" for step in steps)


def points(name: str = "loss") -> list[list[float]]:
    rows = TrainingPoints.objects.filter(series__name=name).order_by("number")
    return [bucket for row in rows for bucket in row.buckets]


def test_collection_stores_each_line_once_while_the_log_grows(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    job = start()
    write(job, "step=1 loss=0.5\nstep=2 lo")
    training_metrics.collect()
    write(job, "ss=0.25 acc=0.9\nstep=3")
    training_metrics.collect()
    assert points() == [[1, 0.5, 0.5, 0.5], [2, 0.25, 0.25, 0.25]]
    assert points("acc") == [[2, 0.9, 0.9, 0.9]]
    with django_assert_num_queries(2):  # an unfinished line is not read again until more is there
        assert not training_metrics.collect()
    write(job, " loss=0.125")
    for stream in LogStream.objects.filter(attempt__job=job):
        log_store.finish(stream)
    training_metrics.collect()
    for stream in LogStream.objects.filter(attempt__job=job):
        log_store.seal(stream)
    training_metrics.collect()
    row = TrainingSeries.objects.get(name="loss")
    assert (row.count, row.last, row.last_step, row.minimum, row.maximum) == (3, 0.125, 3, 0.125, 0.5)
    assert not MetricsCursor.objects.exists()


def test_sealed_log_is_read_to_its_end_although_nobody_read_it_live() -> None:
    job = start()
    write(job, lines(range(5)))
    for stream in LogStream.objects.filter(attempt__job=job):
        log_store.seal(stream)
    training_metrics.collect()
    assert [bucket[0] for bucket in points()] == [0, 1, 2, 3, 4]
    assert not MetricsCursor.objects.exists()


def test_pass_that_breaks_off_before_its_commit_is_repeated_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    job = start()
    write(job, lines(range(3)))
    with monkeypatch.context() as broken:
        broken.setattr(series, "_save", lambda _changed: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            training_metrics.collect()
    assert (MetricsCursor.objects.get().offset, points()) == (0, [])
    training_metrics.collect()
    assert len(points()) == 3


def test_two_workers_at_once_store_a_piece_once(monkeypatch: pytest.MonkeyPatch) -> None:
    job = start()
    write(job, lines(range(3)))
    parse = output.parse

    def overtaken(data: bytes) -> Iterator[Sample]:
        monkeypatch.setattr(collection, "parse", parse)
        training_metrics.collect()
        return parse(data)

    monkeypatch.setattr(collection, "parse", overtaken)
    training_metrics.collect()
    assert len(points()) == 3


def test_only_the_first_replica_that_prints_a_metric_counts() -> None:
    job = start("launcher", "worker")
    write(job, lines([1]), "worker", 1)
    write(job, lines([1, 2]), "worker")
    training_metrics.collect()
    write(job, lines([7]) + lines([8], "acc"), "launcher")
    training_metrics.collect()
    roles = TrainingSeries.objects.values_list("name", "role", "count")
    assert sorted(roles) == [("acc", "launcher", 1), ("loss", "worker", 2)]


def test_new_attempt_replaces_the_points_from_its_first_step_on() -> None:
    job = start()
    write(job, lines(range(10)))
    training_metrics.collect()
    Job.objects.filter(pk=job.pk).update(attempt_number=2)
    job.refresh_from_db()
    make_replica(new_attempt(job, 2))
    follow(job)
    write(job, "step=6 loss=9\n")
    training_metrics.collect()
    assert [bucket[0] for bucket in points()] == [0, 1, 2, 3, 4, 5, 6]
    row = TrainingSeries.objects.get()
    assert (row.count, row.maximum, row.last, row.attempt) == (7, 9, 9, 2)


def test_job_has_a_bounded_number_of_series_of_bounded_names() -> None:
    job = start()
    write(job, "".join(f"step=1 m{number}=1 {'n' * 99}{number}=1\n" for number in range(2 * MOST_SERIES)))
    training_metrics.collect()
    assert TrainingSeries.objects.count() == MOST_SERIES


def test_series_are_deleted_with_their_job() -> None:
    job = start()
    write(job, lines(range(3)))
    training_metrics.collect()
    job.delete()
    assert not TrainingSeries.objects.exists()
    assert not TrainingPoints.objects.exists()
    assert not MetricsCursor.objects.exists()


def test_query_count_does_not_grow_with_points(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    job = start()
    write(job, lines(range(1)) + lines(range(1), "acc"))
    training_metrics.collect()
    for steps in (range(1, 3), range(3, 90)):
        write(job, lines(steps) + lines(steps, "acc"))
        with django_assert_num_queries(10):
            training_metrics.collect()


def test_long_series_is_stored_in_bounded_rows_with_its_extremes() -> None:
    job = start()
    count = 3 * MOST_BUCKETS + 7
    for begin in range(0, count, 500):
        write(job, lines(range(begin, min(count, begin + 500))))
        training_metrics.collect()
    write(job, f"step={count} loss=-5\n")
    training_metrics.collect()
    found = points()
    row = TrainingSeries.objects.get()
    assert len(found) <= MOST_BUCKETS
    assert row.count == count + 1
    assert [bucket[0] for bucket in found] == sorted(bucket[0] for bucket in found)
    assert (row.minimum, min(bucket[2] for bucket in found)) == (-5, -5)
    assert (row.maximum, max(bucket[3] for bucket in found)) == ((count - 1) / 10, (count - 1) / 10)
    assert found[-1][:2] == [count, -5]


@given(st.lists(st.integers(0, 99), min_size=1, max_size=300), st.integers(4, 20))
def test_down_sampling_loses_no_extreme_and_keeps_the_order(values: list[int], most: int) -> None:
    appender = Appender(TrainingSeries(name="loss", axis="step"), [])
    before = series.MOST_BUCKETS
    series.MOST_BUCKETS = most  # type: ignore[misc]
    try:
        for step, value in enumerate(values):
            appender.add(Sample("loss", "step", step, value))
    finally:
        series.MOST_BUCKETS = before  # type: ignore[misc]
    found = appender.buckets
    assert len(found) <= most
    assert found[-1][:2] == [len(values) - 1, values[-1]]
    assert (min(each[2] for each in found), max(each[3] for each in found)) == (min(values), max(values))
    assert sorted(each[0] for each in found) == [each[0] for each in found]
    assert (appender.row.count, appender.row.minimum) == (len(values), min(values))


def test_steps_that_begin_again_in_a_log_are_counted_on() -> None:
    job = start()
    write(job, lines([*range(10), *range(10)]))
    training_metrics.collect()
    assert [bucket[0] for bucket in points()] == list(range(20))
