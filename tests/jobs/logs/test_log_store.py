"""The log store: every byte at its offset, live or sealed, and nothing but logs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.core.files.storage import storages
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import Settings

from jobs.logs import log_store
from jobs.models import LogChunk, LogStream
from tests.jobs.conftest import Place, attempt_of, queued

pytestmark = pytest.mark.django_db


@pytest.fixture
def home(tmp_path: Path, settings: Settings) -> Path:
    settings.CONSOLE_SHARED_FOLDER = tmp_path
    settings.STORAGES = settings.STORAGES | {
        "logs": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "logs"},
        }
    }
    (tmp_path / "jobs" / "j" / "1").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def stream(place: Place) -> LogStream:
    return LogStream.objects.create(
        attempt=attempt_of(queued(place)), role="w", index=0, live_path="j/1/w-0.output"
    )


def write(home: Path, data: bytes) -> Path:
    path = home / "jobs" / "j" / "1" / "w-0.output"
    path.write_bytes(data)
    return path


def whole(stream: LogStream, limit: int = 1000) -> bytes:
    data, offset = b"", 0
    while True:
        piece = log_store.read(stream, offset, limit)
        if not piece.data:
            return data
        assert piece.offset == offset
        data += piece.data
        offset = piece.next_offset


def test_log_store_reads_live_log_from_its_file(home: Path, stream: LogStream) -> None:
    write(home, b"one\ntwo\n")
    piece = log_store.read(stream, 4, 100)
    assert (piece.data, piece.next_offset, piece.size, piece.state) == (b"two\n", 8, 8, "open")


def test_log_store_missing_live_log_is_empty_and_open(home: Path, stream: LogStream) -> None:
    piece = log_store.read(stream, 0, 100)
    assert (piece.data, piece.state) == (b"", "open")


def test_log_store_tail_begins_at_line_start(home: Path, stream: LogStream) -> None:
    write(home, b"first line\nsecond line\nthird\n")
    assert log_store.read(stream, -8, 100).data == b"second line\nthird\n"
    assert log_store.read(stream, -1000, 100).data.startswith(b"first")


def test_log_store_seal_keeps_every_byte_without_file(
    home: Path, stream: LogStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_store, "CHUNK", 64)
    data = os.urandom(1000)
    path = write(home, data)
    log_store.seal(stream)
    path.unlink()
    stream.refresh_from_db()
    assert (stream.sealed, stream.state, stream.size) == (True, "complete", 1000)
    assert whole(stream, 100) == data
    assert log_store.read(stream, -1, 10).data == data[-1:] or b"\n" in data


def test_log_store_repeated_seal_after_interruption_changes_nothing(
    home: Path, stream: LogStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_store, "CHUNK", 64)
    data = bytes(range(200))
    write(home, data)
    log_store.seal(stream)
    chunks = set(LogChunk.objects.values_list("offset", "storage_name"))
    LogStream.objects.update(sealed=False)
    LogChunk.objects.filter(offset=64).delete()
    stream.refresh_from_db()
    log_store.seal(stream)
    stream.refresh_from_db()
    assert whole(stream) == data
    assert set(LogChunk.objects.values_list("offset", "storage_name")) == chunks
    assert len(storages["logs"].listdir(str(stream.pk))[1]) == len(chunks)


def test_log_store_truncates_oversized_log_to_head_and_tail(
    home: Path, stream: LogStream, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(log_store, "CHUNK", 1024)
    monkeypatch.setattr(log_store, "_plan_cut", lambda _size: (2048, 6144))
    data = b"".join(b"%07d\n" % i for i in range(1024))
    write(home, data)
    log_store.seal(stream)
    stream.refresh_from_db()
    assert stream.state == "truncated"
    text = b""
    offset = 0
    while (piece := log_store.read(stream, offset, 512)).data:
        text += piece.data
        offset = piece.next_offset
    assert text == data[:2048] + b"\n[4096 bytes were left out here]\n" + data[6144:]


@pytest.mark.parametrize("path", ["../keys/secret_key", "/etc/passwd", "j/../../keys/secret_key", ""])
def test_log_store_path_outside_jobs_folder_opens_nothing(home: Path, path: str) -> None:
    with pytest.raises(log_store.Unsafe), log_store.open_live(path):
        pytest.fail("opened")


def test_log_store_log_replaced_by_link_or_pipe_opens_nothing(home: Path, stream: LogStream) -> None:
    secret = home / "secret"
    secret.write_text("key")
    path = write(home, b"x")
    path.unlink()
    path.symlink_to(secret)
    with pytest.raises(log_store.Unsafe):
        log_store.read(stream, 0, 10)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(log_store.Unsafe):
        log_store.read(stream, 0, 10)
    path.unlink()
    folder = path.parent
    folder.rmdir()
    folder.symlink_to(home)
    with pytest.raises(log_store.Unsafe):
        log_store.read(stream, 0, 10)


def test_log_store_log_lost_before_seal_is_gone_not_empty(home: Path, stream: LogStream) -> None:
    log_store.seal(stream)
    stream.refresh_from_db()
    assert (stream.state, log_store.read(stream, 0, 10).state) == ("gone", "gone")


@hypothesis_settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=300), st.integers(-320, 320), st.integers(0, 300))
def test_log_store_sealed_and_live_reads_agree(
    home: Path, stream: LogStream, data: bytes, offset: int, limit: int
) -> None:
    write(home, data)
    LogChunk.objects.all().delete()
    LogStream.objects.update(sealed=False, state="complete", size=0)
    stream.refresh_from_db()
    live = log_store.read(stream, offset, limit)
    log_store.seal(stream)
    stream.refresh_from_db()
    assert log_store.read(stream, offset, limit) == live
