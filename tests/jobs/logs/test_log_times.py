"""Times of lines, and the logs of several replicas as one: each line once, in the order of time."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.logs import log_store, log_times, merged_logs
from jobs.logs.log_times import LogMoment
from jobs.logs.merged_logs import Cursor, MergedLine
from jobs.models import LogStream
from jobs.node.wrapper import log_times as writer
from jobs.node.wrapper.log_times import ENTRY, LogTimes
from tests.jobs.conftest import Place, attempt_of, queued

pytestmark = pytest.mark.django_db

NOON_MS = 1_767_268_800_000
"""2026-01-01 12:00 UTC."""


@pytest.fixture
def home(tmp_path: Path, settings: Settings) -> Path:
    settings.CONSOLE_SHARED_FOLDER = tmp_path
    settings.STORAGES = settings.STORAGES | {
        "logs": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "logs"},
        }
    }
    (tmp_path / "jobs" / "j").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def streams(place: Place, home: Path) -> list[LogStream]:
    """The logs of three replicas of one attempt."""
    attempt = attempt_of(queued(place))
    return [
        LogStream.objects.create(attempt=attempt, role="w", index=index, live_path=f"j/w-{index}.output")
        for index in range(3)
    ]


def append(home: Path, stream: LogStream, ms: int, data: bytes) -> None:
    """Write as a wrapper does: the bytes, and that they came then."""
    path = home / "jobs" / stream.live_path
    with path.open("ab") as log, path.with_suffix(".times").open("ab") as times:
        times.write(ENTRY.pack(log.tell(), ms))
        log.write(data)


def test_log_times_stand_before_lines_live_and_stored(home: Path, streams: list[LogStream]) -> None:
    stream = streams[0]
    append(home, stream, NOON_MS, b"one\r\ntw")
    append(home, stream, NOON_MS + 1500, b"o\nthree\n\xff\n")
    expected = (
        b"2026-01-01T12:00:00.000Z one\r\n2026-01-01T12:00:00.000Z two\n"
        b"2026-01-01T12:00:01.500Z three\n2026-01-01T12:00:01.500Z \xff\n"
    )
    for is_stored in (False, True):
        if is_stored:
            log_times.store(stream)
            log_times.store(stream)
            log_store.seal(stream)
            shutil.rmtree(home / "jobs")
            stream.refresh_from_db()
        data = log_store.read(stream, 0, 1000).data
        assert log_times.add_times(stream, data, 0) == expected
        assert log_times.add_times(stream, data[6:], 6) == b"wo\n" + expected.partition(b"two\n")[2]
        assert log_times.find_times(stream, 8, 9) == [LogMoment(7, NOON_MS + 1500)]
    log_times.discard(stream)
    assert log_times.add_times(stream, b"one\n", 0) == b"one\n"


def test_log_times_of_hostile_index_do_no_harm(home: Path, streams: list[LogStream]) -> None:
    append(home, streams[0], 2**64 - 1, b"one\n")
    append(home, streams[0], 0, b"two\n")
    times = home / "jobs/j/w-0.times"
    times.write_bytes(times.read_bytes() + b"cut off")
    (home / "jobs/j/w-1.output").write_bytes(b"three\n")
    (home / "jobs/j/w-1.times").symlink_to("/etc/passwd")
    assert b"two\n" in log_times.add_times(streams[0], b"one\ntwo\n", 0)
    assert log_times.add_times(streams[1], b"three\n", 0) == b"three\n"
    lines = merged_logs.read_after(streams, (0, 0, 0), 1000).lines
    assert sorted(line.text for line in lines) == [b"one", b"three", b"two"]


def test_log_times_are_sparse_and_bounded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [NOON_MS]
    monkeypatch.setattr(time, "time_ns", lambda: now[0] * 1_000_000)
    times = LogTimes(home / "jobs/j/w-0.output")
    for offset in range(1000):
        times.mark(offset)
        now[0] += 10
    now[0] = NOON_MS - 5000  # the clock is set back
    times.mark(1000)
    times.close()
    entries = list(ENTRY.iter_unpack((home / "jobs/j/w-0.times").read_bytes()))
    assert entries[:2] == [(0, NOON_MS), (10, NOON_MS + 100)]
    assert entries[-1] == (1000, NOON_MS - 5000)
    assert len(entries) == 101
    assert writer.step_ms(0) < writer.step_ms(10 << 20) < writer.step_ms(20 << 20)


def everything(streams: list[LogStream], limit: int, cursor: Cursor) -> tuple[list[MergedLine], Cursor]:
    """All lines from a cursor on, window by window."""
    lines: list[MergedLine] = []
    while (window := merged_logs.read_after(streams, cursor, limit)).lines:
        lines += window.lines
        cursor = window.after
    return lines, cursor


@pytest.mark.parametrize("limit", [1, 300, 5000])
def test_merged_logs_have_each_line_once_by_time_in_both_directions(
    home: Path, streams: list[LogStream], limit: int
) -> None:
    chance, ms, expected = random.Random(limit), NOON_MS, []
    for number in range(400):
        ms += chance.choice((0, 0, 150, 4000))
        index = chance.randrange(3)
        append(home, streams[index], ms, b"%d%b\n" % (number, b"x" * chance.choice((0, 10, 200))))
        expected.append((ms, index, number))
    expected.sort()
    lines, after = everything(streams, limit, (0, 0, 0))
    assert [(line.ms, line.position, int(line.text.rstrip(b"x"))) for line in lines] == expected
    assert after == merged_logs.sizes(streams)
    earlier: list[MergedLine] = []
    while any(after):
        window = merged_logs.read_before(streams, after, max(limit, 3000))
        assert window.after == after
        assert 0 < len(window.lines) < 150
        earlier[:0] = window.lines
        after = window.before
    assert {(line.position, line.offset) for line in earlier} == {
        (line.position, line.offset) for line in lines
    }
    assert len(earlier) == len(lines)
    assert [line.ms for line in earlier] == sorted(line.ms for line in lines)


def test_merged_logs_get_late_and_long_lines_once(home: Path, streams: list[LogStream]) -> None:
    append(home, streams[0], NOON_MS + 9000, b"first\npart of a ")
    lines, after = everything(streams, 1000, (0, 0, 0))
    assert [line.text for line in lines] == [b"first"]
    everything_now = merged_logs.read_after(streams, (0, 0, 0), 1000, has_open_lines=True)
    assert [line.text for line in everything_now.lines] == [b"first", b"part of a "]
    append(home, streams[1], NOON_MS, b"late\n" + b"y" * 100_000 + b"\n")
    append(home, streams[0], NOON_MS + 9500, b"line\n")
    lines, after = everything(streams, 1000, after)
    assert [line.text for line in lines if line.position == 0] == [b"part of a line"]
    assert b"".join(line.text for line in lines if line.position == 1) == b"late" + b"y" * 100_000
    assert after == merged_logs.sizes(streams)
