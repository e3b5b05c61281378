"""The last lines of a log as plain text."""

from __future__ import annotations

import pytest

from jobs.logs.tail import LONGEST_LINE, last_lines, plain
from jobs.models import LogStream
from jobs.states import State
from tests.factories import make_job
from tests.jobs.web.conftest import write_log


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (" 10%\r 50%\r100%", "100%"),
        ("done\r", "done"),
        ("a\tb", "a\tb"),
        ("bell\x07 null\x00", "bell null"),
        ("cut \x1b[3", "cut 3"),
        ("\x1b(Bplain", "plain"),
    ],
)
def test_plain_line_matches_terminal_rendering(line: str, text: str) -> None:
    assert plain(line) == text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"one", ["one"]),
        (b"one\ntwo\n", ["one", "two"]),
        (b"\xff\xfe\n", ["\ufffd\ufffd"]),
        (b"x" * 10_000, ["x" * LONGEST_LINE]),
    ],
)
def test_last_lines_are_given_for_any_bytes(data: bytes, lines: list[str]) -> None:
    job = make_job(State.FAILED)
    write_log(job, data)
    assert last_lines(LogStream.objects.get(attempt__job=job)) == lines


@pytest.mark.django_db
def test_last_lines_are_read_only_from_end_of_long_log() -> None:
    job = make_job(State.FAILED)
    write_log(job, b"".join(b"%d\n" % number for number in range(100_000)))
    lines = last_lines(LogStream.objects.get(attempt__job=job))
    assert lines == [str(number) for number in range(99_980, 100_000)]


@pytest.mark.django_db
def test_last_lines_of_path_outside_folder_are_empty() -> None:
    job = make_job(State.FAILED)
    write_log(job, b"")
    stream = LogStream.objects.get(attempt__job=job)
    stream.live_path = "../keys/secret_key"
    assert last_lines(stream) == []
