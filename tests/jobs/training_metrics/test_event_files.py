"""From event files, as TensorBoard's own writer makes them, to series; hostile files do no harm."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.histogram.summary_v2 import histogram_pb
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from jobs import training_metrics
from jobs.logs import log_store
from jobs.models import EventFile, Job, LogStream, MetricsCursor, TrainingSeries
from jobs.training_metrics import collection
from jobs.training_metrics.event_format import BrokenFile, read_records
from tests.jobs.training_metrics.test_collection import folder, points, start

__all__ = ["folder"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(folder: None, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A running job whose folders are as the local backend makes them."""
    monkeypatch.setattr(collection, "SEARCH_EVERY", 1)
    job = start()
    path = f"{job.public_id}/1/logs/main-0.output"
    LogStream.objects.filter(attempt__job=job, index=0).update(live_path=path)
    log = log_store.jobs_root() / path
    log.parent.mkdir(parents=True)
    log.touch()
    work_of(job).mkdir(parents=True)
    return job


def work_of(job: Job) -> Path:
    return log_store.jobs_root() / job.public_id / "1" / "work" / "main-0"


def write(writer: EventFileWriter, step: int, **values: float) -> None:
    """Write values as PyTorch's writer does."""
    found = [Summary.Value(tag=tag.replace("__", "/"), simple_value=value) for tag, value in values.items()]
    writer.add_event(Event(step=step, wall_time=1.0, summary=Summary(value=found)))
    writer.flush()


def test_scalars_of_event_files_become_series_while_they_are_written(job: Job) -> None:
    writer = EventFileWriter(str(work_of(job) / "runs" / "first"))
    write(writer, 0, train__loss=0.5, lr=0.25)
    writer.add_event(Event(step=0, summary=histogram_pb("weights", [1.0, 2.0])))
    write(writer, 1, train__loss=float("nan"))
    training_metrics.collect()
    assert points("train/loss") == [[0, 0.5, 0.5, 0.5]]
    write(writer, 2, train__loss=0.125)
    keras = EventFileWriter(str(work_of(job) / "logs" / "validation"))
    keras.add_event(Event(step=2, summary=scalar_pb("epoch_loss", 0.75)))
    keras.close()
    training_metrics.collect()
    training_metrics.collect()
    assert points("train/loss") == [[0, 0.5, 0.5, 0.5], [2, 0.125, 0.125, 0.125]]
    assert points("validation/epoch_loss") == [[2, 0.75, 0.75, 0.75]]
    assert set(TrainingSeries.objects.values_list("name", "source")) == {
        ("train/loss", "tensorboard"),
        ("lr", "tensorboard"),
        ("validation/epoch_loss", "tensorboard"),
    }
    log = log_store.jobs_root() / LogStream.objects.get(attempt__job=job, index=0).live_path
    log.write_text("step=3 lr=9\n")
    training_metrics.collect()
    assert points("lr") == [[0, 0.25, 0.25, 0.25]], "a metric has one source"
    write(writer, 3, train__loss=0.0625)
    writer.close()
    for stream in LogStream.objects.filter(attempt__job=job):
        log_store.seal(stream)
    training_metrics.collect()
    assert points("train/loss")[-1] == [3, 0.0625, 0.0625, 0.0625], "what was written last is read at the end"
    assert not EventFile.objects.exists()
    assert not MetricsCursor.objects.exists()


def test_links_and_broken_event_files_are_passed_over(job: Job, tmp_path: Path) -> None:
    elsewhere = EventFileWriter(str(tmp_path / "elsewhere"))
    write(elsewhere, 1, secret=1.0)
    elsewhere.close()
    (work_of(job) / "runs").symlink_to(tmp_path / "elsewhere")
    [file] = (tmp_path / "elsewhere").iterdir()
    (work_of(job) / "events.out.tfevents.1").symlink_to(file)
    (work_of(job) / "events.out.tfevents.2").write_bytes(b"\xff" * 100)
    (work_of(job) / "events.out.tfevents.3").mkdir()
    for _again in range(2):
        training_metrics.collect()
    assert not TrainingSeries.objects.exists()


@given(st.binary(max_size=200), st.binary(max_size=64))
def test_any_bytes_are_read_without_an_error(data: bytes, message: bytes) -> None:
    framed = struct.pack("<QI", len(message), 0) + message + bytes(4)
    samples, consumed = read_records(framed)
    assert consumed == len(framed)
    assert all(sample.name.isprintable() for sample in samples)
    try:
        assert read_records(data)[1] >= 0
    except BrokenFile:
        assert len(data) >= 12
