"""What a job prints of its own secrets is masked in its logs, in whatever pieces they are read."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from itertools import pairwise
from pathlib import Path

import pytest
from django.core.files.storage import storages
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from jobs.live.tail import Tail
from jobs.logs import log_search, log_store, redaction, tail
from jobs.logs.redaction import Redactor, mask_values, store_secrets
from jobs.models import Attempt, LogStream
from tests.jobs.conftest import Place, attempt_of, queued

SECRET = "canary-5d1f7b6e"
MASKED = b"*" * len(SECRET)

few = st.text("ab", min_size=6, max_size=9).map(str.encode)
texts = st.text("abc\n", max_size=80).map(str.encode)
cuts = st.lists(st.integers(0, 80), max_size=8)


def naive(data: bytes, values: list[bytes]) -> bytes:
    """Every byte that any occurrence covers."""
    hidden = {
        at + more
        for value in values
        for at in range(len(data))
        if data.startswith(value, at)
        for more in range(len(value))
    }
    return bytes(ord("*") if at in hidden else byte for at, byte in enumerate(data))


def file_of(folder: Path, data: bytes) -> int:
    path = folder / "log"
    path.write_bytes(data)
    return os.open(path, os.O_RDONLY)


@given(texts, st.lists(few, max_size=3))
def test_redactor_masks_every_occurrence_including_overlaps(data: bytes, values: list[bytes]) -> None:
    assert Redactor(values).mask(data) == naive(data, values)


@given(texts, st.lists(few, max_size=3), cuts)
def test_redactor_result_is_independent_of_pieces(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, values: list[bytes], at: list[int]
) -> None:
    file = file_of(tmp_path_factory.getbasetemp(), data)
    edges = [0, *sorted(min(cut, len(data)) for cut in at), len(data)]
    redactor = Redactor(values)
    pieces = [redactor.pread(file, end - begin, begin) for begin, end in pairwise(edges)]
    os.close(file)
    assert b"".join(pieces) == naive(data, values)
    assert [len(piece) for piece in pieces] == [end - begin for begin, end in pairwise(edges)]


@given(texts, few, cuts)
def test_redactor_shows_at_most_three_bytes_of_secret_in_growing_log(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, value: bytes, at: list[int]
) -> None:
    """Whoever follows reads from where they were, as far as may be told then."""
    redactor, told = Redactor([value]), b""
    edges = [*sorted(min(cut, len(data)) for cut in at), len(data)]
    for size in edges:
        file = file_of(tmp_path_factory.getbasetemp(), data[:size])
        told += redactor.pread(file, redactor.visible_size(file, size) - len(told), len(told))
        os.close(file)
    whole = naive(data, [value])
    assert len(told) <= len(data)
    for run in re.finditer(rb"\*+", whole[: len(told)]):
        plain = sum(told[place] != ord("*") for place in range(*run.span()))
        occurrences = len(re.findall(b"(?=" + re.escape(value) + b")", data[slice(*run.span())]))
        assert plain <= 3 * max(1, occurrences)


def test_redactor_masks_repetitive_secret_quickly() -> None:
    redactor = Redactor([b"a" * 60_000, b"ab" * 20_000])
    begin = time.process_time()
    assert redactor.mask(b"a" * 300_000) == b"*" * 300_000
    assert redactor.mask(b"ab" * 150_000) == b"*" * 300_000
    assert time.process_time() - begin < 10


def test_mask_values_skip_short_text_and_split_keys_into_lines() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nshort\n-----END KEY-----\n"
    assert list(mask_values(["short", " padded \n", "hf_ä"])) == [b"padded", "hf_ä".encode()][:1]
    assert list(mask_values([key]))[1:] == [b"MIIEvQIBADANBgkqhkiG9w0BAQEF"]
    masked = Redactor(mask_values([key])).mask(key.replace("\n", "\r\n").encode())
    assert b"MIIE" not in masked


# --- as it is served -------------------------------------------------------------------------------------


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
def stream(place: Place, home: Path) -> LogStream:
    attempt = attempt_of(queued(place))
    store_secrets([(attempt, [SECRET, "tiny"])])
    attempt.refresh_from_db()
    assert SECRET not in attempt.confided
    return LogStream.objects.create(attempt=attempt, role="w", index=0, live_path="j/1/w-0.output")


def write(home: Path, data: bytes) -> None:
    (home / "jobs" / "j" / "1" / "w-0.output").write_bytes(data)


@pytest.mark.django_db
def test_log_store_masks_live_and_sealed_logs_at_every_offset(
    home: Path, stream: LogStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = f"tiny\nbefore {SECRET}{SECRET} after\n{SECRET}\n".encode()
    wanted = data.replace(SECRET.encode(), MASKED)
    write(home, data)
    monkeypatch.setattr(log_store, "CHUNK", 20)
    for sealed in (False, True):
        if sealed:
            log_store.seal(stream)
            stream.refresh_from_db()
        for limit in (1, 7, 1000):
            found = b"".join(
                log_store.read(stream, offset, limit).data for offset in range(0, len(data), limit)
            )
            assert found == wanted
        assert b"".join(piece for _offset, piece in log_search.pieces(stream)) == wanted
        assert log_search.search(stream, SECRET, 0, 10).found == []
        assert SECRET not in "".join(tail.last_lines(stream))
    kept = b""
    for chunk in stream.chunks.order_by("offset"):
        with storages["logs"].open(chunk.storage_name) as file:
            kept += file.read()
    assert kept == wanted
    assert log_store.read(stream, 0, 1000).size == len(data)


@pytest.mark.django_db
def test_log_store_holds_back_beginning_of_secret(home: Path, stream: LogStream) -> None:
    for begun in (4, 10, len(SECRET) - 1):
        write(home, b"it is " + SECRET[:begun].encode())
        found = log_store.read(stream, 0, 1000)
        assert (found.data, found.size, found.next_offset) == (b"it is ", 6, 6)
    write(home, f"it is {SECRET}".encode())
    assert log_store.read(stream, 6, 1000).data == MASKED
    write(home, f"it is {SECRET[:10]}".encode())
    LogStream.objects.update(state=LogStream.State.COMPLETE)
    stream.refresh_from_db()
    assert log_store.read(stream, 0, 1000).size == 16, "nothing more can come"


@pytest.mark.django_db
def test_log_follower_gets_masked_text(home: Path, stream: LogStream) -> None:
    data = f"it is {SECRET}, ä {SECRET}".encode()
    path = home / "log"
    path.write_bytes(b"")
    live = Tail((1, 1), os.open(path, os.O_RDONLY), redaction.of_stream(stream))
    for end in range(len(data) + 1):
        path.write_bytes(data[:end])
        live.look()
    live.ended = True
    live.look()
    frame = asyncio.run(live.after(0))
    assert frame is not None
    lines = [line[6:] for line in frame.event.splitlines() if line.startswith(b"data:")]
    text = "".join(json.loads(line) for line in lines)
    # Byte by byte, the first three were told before anybody could know what they begin.
    assert text == f"it is can{'*' * 12}, ä can{'*' * 12}"
    behind = asyncio.run(live.after(1))
    assert behind is not None
    assert SECRET[3:].encode() not in behind.event


@pytest.mark.django_db
def test_attempt_secrets_stay_known_after_later_sends(stream: LogStream) -> None:
    attempt = Attempt.objects.get(pk=stream.attempt_id)
    store_secrets([(attempt, ["another-secret"])])
    store_secrets([(attempt, [])])
    stream.refresh_from_db()
    stream = LogStream.objects.select_related("attempt").get(pk=stream.pk)
    masked = redaction.of_stream(stream).mask(f"{SECRET} another-secret".encode())
    assert masked == MASKED + b" " + b"*" * 14
