"""Searches through merged logs, the way to what was found, and the text of all."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from jobs.logs import log_store, merged_logs, merged_search
from jobs.logs.merged_logs import Cursor, MergedLine
from jobs.logs.pattern_search import BadPattern
from jobs.models import LogStream
from jobs.states import State
from tests.factories import attempt_of, make_job, make_replica
from tests.jobs.logs.test_log_times import NOON_MS, append, everything, home, streams
from tests.jobs.web.conftest import People, browser, people, write_log

__all__ = ["home", "people", "streams"]

pytestmark = pytest.mark.django_db


def write_lines(home: Path, streams: list[LogStream]) -> None:
    """Lines of three replicas, many of them of the same moment."""
    chance, ms = random.Random(7), NOON_MS
    for number in range(600):
        ms += chance.choice((0, 0, 150, 4000))
        index = chance.randrange(3)
        append(home, streams[index], ms, b"%d %b\n" % (number, b"x" * chance.choice((0, 10, 200))))


def find_all(streams: list[LogStream], pattern: str, limit: int) -> list[MergedLine]:
    """What is found, page by page."""
    found: list[MergedLine] = []
    cursor: Cursor | None = (0, 0, 0)
    searched = -1
    while cursor is not None:
        page = merged_search.search(streams, pattern, cursor, limit)
        assert len(page.found) <= limit
        assert searched < page.searched <= page.size
        found, cursor, searched = found + page.found, page.next, page.searched
    return found


@pytest.mark.parametrize(("limit", "first_slice"), [(1000, 1 << 18), (7, 1 << 18), (50, 3000)])
def test_merged_search_finds_each_line_once_by_time(
    home: Path,
    streams: list[LogStream],
    limit: int,
    first_slice: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merged_search, "FIRST_SLICE", first_slice)
    monkeypatch.setattr(merged_search, "MOST_SLICE", first_slice)
    write_lines(home, streams)
    lines, _after = everything(streams, 100_000, (0, 0, 0))
    expected = [(each.ms, each.position, each.offset) for each in lines if re.match(rb"\d*7 ", each.text)]
    found = find_all(streams, r"^\d*7 ", limit)
    assert [(each.ms, each.position, each.offset) for each in found] == expected
    assert len(expected) == 60


def test_merged_search_cuts_slices_with_too_many_matches(
    home: Path, streams: list[LogStream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged_search, "MOST_IN_SLICE", 20)
    monkeypatch.setattr(merged_search, "LEAST_SLICE", 1000)
    write_lines(home, streams)
    assert [int(each.text.split()[0]) for each in find_all(streams, "^", 1000)] == [
        int(each.text.split()[0]) for each in everything(streams, 100_000, (0, 0, 0))[0]
    ]


def test_merged_search_takes_logs_without_times_first_and_refuses_bad_patterns(
    home: Path, streams: list[LogStream]
) -> None:
    append(home, streams[0], NOON_MS, b"late Error: no\n")
    (home / "jobs/j/w-1.output").write_bytes(b"Error: yes\nunfinished error")
    found = find_all(streams, "error", 1)
    assert [each.text for each in found] == [b"Error: yes", b"unfinished error", b"late Error: no"]
    log_store.seal(streams[0])
    streams[0].refresh_from_db()
    assert len(find_all(streams, "error", 10)) == 3
    with pytest.raises(BadPattern):
        merged_search.search(streams, "(", (0, 0, 0), 10)
    with pytest.raises(BadPattern):
        merged_search.search([None, None], "(?=x)", (0, 0), 10)


def test_merged_logs_open_at_a_line_and_go_on_both_ways(home: Path, streams: list[LogStream]) -> None:
    write_lines(home, streams)
    lines, _after = everything(streams, 100_000, (0, 0, 0))
    for line in lines[::50]:
        cursor = merged_logs.cursor_at(streams, line.position, line.offset)
        later, _end = everything(streams, 100_000, cursor)
        earlier = [each for each in lines if each.offset < cursor[each.position]]
        assert line in later
        assert len(earlier) + len(later) == len(lines)
        assert all(each.ms <= line.ms for each in earlier)
        assert all(each.ms >= line.ms for each in later)


def test_merged_logs_iterate_yields_everything_there_is(home: Path, streams: list[LogStream]) -> None:
    write_lines(home, streams)
    append(home, streams[2], NOON_MS + 10**7, b"unfinished")
    lines = list(merged_logs.iterate_lines(streams))
    assert lines[-1].text == b"unfinished"
    assert lines[:-1] == everything(streams, 1000, (0, 0, 0))[0]


def test_merged_address_answers_searches_lines_and_text(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota)
    make_replica(attempt_of(job), "main", 1)
    write_log(job, b"one\nValueError: x\n")
    write_log(job, b"two\n<b> error\n", index=1)
    client, address = browser(people.owner), f"/jobs/{job.public_id}/logs/merged"
    found = client.get(address, {"level": "error"}).json()
    assert [(each["replica"], each["text"]) for each in found["matches"]] == [
        ("main/0", "ValueError: x"),
        ("main/1", "<b> error"),
    ]
    assert (found["next"], found["searched"], found["size"]) == (None, 32, 32)
    first = client.get(address, {"q": "^[ot]", "regex": "1", "limit": "1"}).json()
    rest = client.get(address, {"q": "^[ot]", "regex": "1", "after": first["next"]}).json()
    assert [each["text"] for each in first["matches"] + rest["matches"]] == ["one", "two"]
    assert client.get(address, {"q": "[ot]"}).json()["matches"] == []
    around = client.get(address, {"replica": "main/1", "offset": "4"}).json()
    assert "<b> error" in [each["text"] for each in around["lines"]]
    for wrong in ({"q": "(", "regex": "1"}, {"level": "x"}, {"replica": "main/9"}, {"after": "x", "q": "a"}):
        assert client.get(address, wrong).status_code == 400, wrong
    assert browser(people.stranger).get(address, {"q": "one"}).status_code == 404
