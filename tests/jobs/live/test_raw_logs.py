"""Log bytes over HTTP: slices by offset, the whole log, and what is found in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.conf import LazySettings

from jobs.logs import log_search, log_store
from jobs.models import Job
from jobs.spec import RoleSpec
from jobs.states import State
from quotas.models import User
from tests.factories import make_job, make_spec
from tests.jobs.live.conftest import People, WrittenLog

Read = Callable[..., httpx.Response]


@pytest.fixture
def read(sign_in: Callable[[User], httpx.Client], people: People, job: Job) -> Read:
    """Ask for a log of the job as its owner."""
    client = sign_in(people.owner)

    def asked(of: Job | None = None, **query: Any) -> httpx.Response:
        return client.get(f"/jobs/{(of or job).public_id}/logs", params={"role": "main", **query})

    return asked


def where(answer: httpx.Response) -> tuple[int, int, int, str]:
    """Offset, next offset, size and state."""
    header = answer.headers
    return int(header["X-Offset"]), int(header["X-Next-Offset"]), int(header["X-Size"]), header["X-State"]


def test_a_slice_says_where_to_go_on(read: Read, written: WrittenLog) -> None:
    written.write("first\nsecond\n")
    answer = read(offset=2, limit=5)
    assert (answer.content, where(answer)) == (b"rst\ns", (2, 7, 13, "open"))
    written.finish()
    answer = read(offset=7)
    assert (answer.content, where(answer)) == (b"econd\n", (7, 13, 13, "complete"))
    assert (answer.headers["X-Attempt"], answer.headers["X-Run"]) == ("1", "1")


def test_slices_put_together_are_the_log_live_and_stored(read: Read, written: WrittenLog) -> None:
    data = bytes(range(256)) * 40
    written.write(data)
    for sealed in (False, True):
        if sealed:
            log_store.seal(written.stream)
            written.path.unlink()
        got, offset = b"", 0
        while offset < len(data):
            answer = read(offset=offset, limit=999)
            got += answer.content
            offset = where(answer)[1]
        assert got == data


def test_a_negative_offset_counts_from_the_end_and_begins_at_a_line(read: Read, written: WrittenLog) -> None:
    written.write("first\nsecond\nthird\n")
    assert read(offset=-8).content == b"second\nthird\n"
    log_store.seal(written.stream)
    assert read(offset=-8).content == b"second\nthird\n"
    assert read(offset=-999).content == b"first\nsecond\nthird\n"


def test_bytes_are_nothing_a_browser_would_act_on(read: Read, written: WrittenLog) -> None:
    written.write("<script>alert(1)</script>")
    for query in ({}, {"download": "1"}):
        headers = read(**query).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Security-Policy"].startswith("sandbox")
        assert headers["Content-Type"] == "text/plain; charset=utf-8"


def test_a_replica_that_has_not_begun_has_an_empty_open_log(read: Read, people: People, job: Job) -> None:
    roles = (RoleSpec(name="main", command="true", replicas=2),)
    waiting = make_job(owner=people.owner, quota=job.quota, spec=make_spec(roles=roles))
    answer = read(waiting, index=1)
    assert (answer.content, where(answer)) == (b"", (0, 0, 0, "open"))
    assert read(waiting, index=1, download=1).content == b""
    assert read(waiting, index=1, q="x").json() == {"matches": [], "next_offset": None}
    Job.objects.filter(pk=waiting.pk).update(state=State.STOPPED)
    assert where(read(waiting, index=1))[3] == "gone"


@pytest.mark.parametrize(
    "query", [{"role": "other"}, {"index": 1}, {"attempt": 2}, {"run": 2}, {"stream": "stderr"}]
)
def test_what_the_job_does_not_have_is_not_there(read: Read, query: dict[str, Any]) -> None:
    assert read(**query).status_code == 404


@pytest.mark.parametrize("query", [{"index": "x"}, {"offset": "1e3"}, {"limit": "-1"}, {"attempt": "0"}])
def test_what_is_no_number_is_refused(read: Read, query: dict[str, str]) -> None:
    assert read(**query).status_code == 400


def test_one_answer_is_bounded(read: Read, written: WrittenLog) -> None:
    written.write(b"x" * (log_store.MOST_AT_ONCE + 1))
    assert len(read(limit=10**12).content) == log_store.MOST_AT_ONCE


# --- all of it ---------------------------------------------------------------------------------------------


def test_the_whole_log_is_downloaded_live_and_stored(read: Read, job: Job, written: WrittenLog) -> None:
    data = b"".join(b"%d\n" % number for number in range(150_000))
    assert len(data) > 3 * log_search.PIECE
    written.write(data)
    for sealed in (False, True):
        if sealed:
            log_store.seal(written.stream)
            written.path.unlink()
        answer = read(download=1)
        assert answer.content == data
        assert int(answer.headers["Content-Length"]) == len(data)
        assert answer.headers["Content-Disposition"] == "attachment; filename*=UTF-8''hello.main-0.log"


@pytest.fixture
def cut(settings: LazySettings, written: WrittenLog, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A stored log of which a cap has left out the middle; as it was written."""
    monkeypatch.setattr(log_store, "CHUNK", 1024)
    settings.CONSOLE_LOG_CAP_MIB = 1 / 256  # 4 KiB
    data = b"".join(b"line %05d\n" % number for number in range(1000))
    written.write(data)
    log_store.seal(written.stream)
    written.path.unlink()
    return data


def test_a_cut_log_is_downloaded_with_a_word_about_what_is_missing(
    read: Read, written: WrittenLog, cut: bytes
) -> None:
    stream = written.stream
    assert stream.cut_from is not None
    assert stream.cut_to is not None
    answer = read(download=1)
    missing = b"\n[%d bytes were left out here]\n" % (stream.cut_to - stream.cut_from)
    assert answer.content == cut[: stream.cut_from] + missing + cut[stream.cut_to :]
    assert int(answer.headers["Content-Length"]) == len(answer.content)


def test_a_cut_log_is_read_around_what_is_missing(read: Read, written: WrittenLog, cut: bytes) -> None:
    got, offset = b"", 0
    while True:
        answer = read(offset=offset, limit=500)
        got += answer.content
        if where(answer)[1] == offset:
            break
        offset = where(answer)[1]
    assert offset == len(cut)
    assert got == read(download=1).content
    assert where(answer)[3] == "truncated"


# --- what is found -----------------------------------------------------------------------------------------


def test_lines_are_found_by_what_they_contain(read: Read, written: WrittenLog) -> None:
    written.write("epoch 1\nLoss: 日本 0.5\nepoch 2\nloss: 0.4\n")
    told = read(q="LOSS").json()
    assert told == {
        "matches": [{"offset": 8, "text": "Loss: 日本 0.5"}, {"offset": 33, "text": "loss: 0.4"}],
        "next_offset": None,
    }
    assert read(q="日本").json()["matches"][0]["offset"] == 8
    assert read(q="nothing like it").json() == {"matches": [], "next_offset": None}
    assert read(q="").json()["matches"] == []


def test_a_search_goes_on_where_it_stopped(read: Read, written: WrittenLog) -> None:
    written.write("".join(f"{number} needle\nhay\n" for number in range(25)))
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        told = read(q="needle", limit=10, offset=offset).json()
        found += [match["text"] for match in told["matches"]]
        offset = told["next_offset"]
    assert found == [f"{number} needle" for number in range(25)]


def test_a_search_answers_in_time_with_what_it_has(written: WrittenLog) -> None:
    written.write(b"needle\n" + b"hay\n" * log_search.PIECE)
    first = log_search.search(written.stream, "needle", 0, 10, seconds=0)
    assert [match.offset for match in first.found] == [0]
    assert first.next_offset is not None
    assert first.next_offset < written.path.stat().st_size


@pytest.mark.parametrize("begin", [b"", b"\n"])
def test_what_lies_across_two_pieces_is_found_once(written: WrittenLog, begin: bytes) -> None:
    before = b"y" * (log_search.PIECE - 3 - len(begin)) + begin
    written.write(before + b"needle" + b"y" * log_search.PIECE)
    [match] = log_search.search(written.stream, "needle", 0, 10).found
    assert match.offset == len(before) if begin else match.offset <= len(before)
    assert "needle" in match.text


def test_a_line_without_an_end_is_searched_in_bounded_memory(written: WrittenLog) -> None:
    written.write(b"z" * (4 * log_search.LONGEST_LINE + 4 * log_search.PIECE) + b"needle")
    [match] = log_search.search(written.stream, "needle", 0, 10).found
    assert len(match.text) <= log_search.EXCERPT
    assert match.text.endswith("needle")


def test_what_was_left_out_is_not_searched_and_offsets_stay_true(written: WrittenLog, cut: bytes) -> None:
    found = log_search.search(written.stream, "line 009", 0, 1000).found
    assert found
    assert all(cut[match.offset :].startswith(match.text.encode()) for match in found)


def test_a_log_behind_a_link_is_not_read(read: Read, written: WrittenLog) -> None:
    secret = log_store.jobs_root() / "secret"
    secret.write_text("not yours\n")
    written.path.unlink()
    written.path.symlink_to(secret)
    assert (read().content, where(read())[3]) == (b"", "gone")
    assert read(download=1).content == b""
    assert read(q="yours").json()["matches"] == []
