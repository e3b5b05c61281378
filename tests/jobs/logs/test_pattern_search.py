"""Searches by regular expressions, and numbers of lines, in live and stored logs."""

from __future__ import annotations

import re

import pytest
from django.conf import LazySettings
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.logs import line_numbers, log_search, log_store, pattern_search
from jobs.logs.pattern_search import BadPattern, PatternTooSlow, search, translate
from jobs.models import LogStream
from jobs.states import State
from tests.factories import make_job
from tests.jobs.web.conftest import People, browser, people, write_log

__all__ = ["people"]

LOG = (
    b"step=1 loss: 0.5\n\xff\x00 ValueError: \xe6\x97\xa5\xe6\x9c\xac\n"
    + b"y" * 400_000
    + b"END\nstep=22\nWARN x\n"
)


@pytest.fixture
def log(people: People) -> LogStream:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    write_log(job, LOG)
    return LogStream.objects.get(attempt__job=job)


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        (r"^step=\d+( |$)", [b"step=1 loss", b"step=22"]),
        (r"^STEP=[\d]{2}$", [b"step=22"]),
        ("日.$", [b"\xff\x00 Value"]),
        (r"y(?:END)$", [b"END"]),
        ("nothing", []),
        (pattern_search.LEVELS["error"], [b"\xff\x00 Value"]),
        (pattern_search.LEVELS["warning"], [b"\xff\x00 Value", b"WARN x"]),
    ],
)
def test_pattern_search_finds_lines_live_and_stored(log: LogStream, pattern: str, lines: list[bytes]) -> None:
    for sealed in (False, True):
        if sealed:
            log_store.seal(log)
            log.refresh_from_db()
        matches = search(log, pattern, 0, 10)
        assert matches.next_offset is None
        for match, line in zip(matches.found, lines, strict=True):
            assert line in LOG[match.offset : match.offset + 500_000], match
            assert len(match.text) <= log_search.EXCERPT


def test_pattern_search_goes_on_after_its_limit_and_its_time(log: LogStream) -> None:
    first = search(log, "step", 0, 1)
    assert first.next_offset == LOG.index(b"\n") + 1
    second = search(log, "step", first.next_offset, 1)
    assert [match.text for match in second.found] == ["step=22"]
    found, rounds = list[str](), 0
    late: int | None = 0
    while late is not None:
        part = search(log, "step", late, 10, seconds=0.0)
        found, late, rounds = found + [each.text for each in part.found], part.next_offset, rounds + 1
    assert (found, rounds > 1) == (["step=1 loss: 0.5", "step=22"], True)


@pytest.mark.parametrize(
    "pattern", ["(", r"(a)\1", "(?=x)", "(?i)x", "a{256}", "a{1,9999}", "x\0", "a\nb", "((a{255}){255}){255}"]
)
def test_pattern_search_refuses_what_is_not_bounded(log: LogStream, pattern: str) -> None:
    with pytest.raises((BadPattern, PatternTooSlow)):
        search(log, pattern, 0, 10)


@given(st.text(alphabet="ab]-^\\.d", min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_sets_mean_the_same_after_translation(members: str) -> None:
    pattern = "[" + re.sub(r"([\]\\^-])", r"\\\1", members) + "]"
    translated = translate(pattern)
    body = translated[1:-1]
    assert {each for each in members if each not in body} == set()
    assert body.find("]") <= 0
    assert "-" not in body[:-1]


def test_line_numbers_and_offsets_agree(log: LogStream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_numbers, "STEP", 1)
    offsets = [0, *(at + 1 for at, byte in enumerate(LOG[:-1]) if byte == 0x0A)]
    for _again in range(2):
        for number, offset in enumerate(offsets, 1):
            assert line_numbers.line_at(log, offset) == number
            assert line_numbers.offset_of(log, number) == offset
        assert line_numbers.offset_of(log, 99) == offsets[-1]


def test_line_numbers_count_the_notice_of_left_out_bytes(
    log: LogStream, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_store, "CHUNK", 1024)
    monkeypatch.setattr(line_numbers, "STEP", 1)
    settings.CONSOLE_LOG_CAP_MIB = 1 / 256
    log_store.seal(log)
    log.refresh_from_db()
    assert log.cut_to is not None
    shown = b"".join(piece for _at, piece in log_search.pieces(log))
    for _again in range(2):
        assert line_numbers.line_at(log, log.size - 1) == shown[:-1].count(b"\n") + 1


def test_log_address_answers_searches_and_lines(people: People, log: LogStream) -> None:
    client, address = browser(people.owner), f"/jobs/{log.attempt.job.public_id}/logs"
    found = client.get(address, {"role": log.role, "q": r"^step=\d\d", "regex": "1"}).json()
    assert [match["text"] for match in found["matches"]] == ["step=22"]
    assert client.get(address, {"role": log.role, "level": "error", "limit": "1"}).json()["matches"]
    assert client.get(address, {"role": log.role, "line": "2"}).json() == {"line": 2, "offset": 17}
    assert client.get(address, {"role": log.role, "line_at": "20"}).json() == {"line": 2, "offset": 20}
    refused = client.get(address, {"role": log.role, "q": "(", "regex": "1"})
    assert (refused.status_code, "Invalid regular expression" in refused.content.decode()) == (400, True)
    assert client.get(address, {"role": log.role, "level": "x"}).status_code == 400
