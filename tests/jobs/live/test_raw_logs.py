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


def test_raw_log_slice_gives_next_offset(read: Read, written: WrittenLog) -> None:
    written.write("first\nsecond\n")
    answer = read(offset=2, limit=5)
    assert (answer.content, where(answer)) == (b"rst\ns", (2, 7, 13, "open"))
    written.finish()
    answer = read(offset=7)
    assert (answer.content, where(answer)) == (b"econd\n", (7, 13, 13, "complete"))
    assert (answer.headers["X-Attempt"], answer.headers["X-Run"]) == ("1", "1")


def test_raw_log_slices_join_to_whole_log_live_and_stored(read: Read, written: WrittenLog) -> None:
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


def test_raw_log_negative_offset_counts_from_end_to_line_start(read: Read, written: WrittenLog) -> None:
    written.write("first\nsecond\nthird\n")
    assert read(offset=-8).content == b"second\nthird\n"
    log_store.seal(written.stream)
    assert read(offset=-8).content == b"second\nthird\n"
    assert read(offset=-999).content == b"first\nsecond\nthird\n"


def test_raw_log_headers_keep_browser_from_running_content(read: Read, written: WrittenLog) -> None:
    written.write("<script>alert(1)</script>")
    for query in ({}, {"download": "1"}):
        headers = read(**query).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Security-Policy"].startswith("sandbox")
        assert headers["Content-Type"] == "text/plain; charset=utf-8"


def test_raw_log_of_unstarted_replica_is_empty_and_open(read: Read, people: People, job: Job) -> None:
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
def test_raw_log_of_unknown_part_is_not_found(read: Read, query: dict[str, Any]) -> None:
    assert read(**query).status_code == 404


@pytest.mark.parametrize("query", [{"index": "x"}, {"offset": "1e3"}, {"limit": "-1"}, {"attempt": "0"}])
def test_raw_log_rejects_non_number_parameters(read: Read, query: dict[str, str]) -> None:
    assert read(**query).status_code == 400


def test_raw_log_answer_size_is_bounded(read: Read, written: WrittenLog) -> None:
    written.write(b"x" * (log_store.MOST_AT_ONCE + 1))
    assert len(read(limit=10**12).content) == log_store.MOST_AT_ONCE


# --- all of it ---------------------------------------------------------------------------------------------


def test_raw_log_download_is_whole_live_and_stored(read: Read, job: Job, written: WrittenLog) -> None:
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


def test_raw_log_download_of_cut_log_notes_missing_bytes(read: Read, written: WrittenLog, cut: bytes) -> None:
    stream = written.stream
    assert stream.cut_from is not None
    assert stream.cut_to is not None
    answer = read(download=1)
    missing = b"\n[%d bytes were left out here]\n" % (stream.cut_to - stream.cut_from)
    assert answer.content == cut[: stream.cut_from] + missing + cut[stream.cut_to :]
    assert int(answer.headers["Content-Length"]) == len(answer.content)


def test_raw_log_slices_of_cut_log_match_download(read: Read, written: WrittenLog, cut: bytes) -> None:
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


def test_log_search_finds_lines_by_content(read: Read, written: WrittenLog) -> None:
    written.write("epoch 1\nLoss: 日本 0.5\nepoch 2\nloss: 0.4\n")
    told = read(q="LOSS").json()
    assert told == {
        "matches": [{"offset": 8, "text": "Loss: 日本 0.5"}, {"offset": 33, "text": "loss: 0.4"}],
        "next_offset": None,
    }
    assert read(q="日本").json()["matches"][0]["offset"] == 8
    assert read(q="nothing like it").json() == {"matches": [], "next_offset": None}
    assert read(q="").json()["matches"] == []


def test_log_search_resumes_at_next_offset(read: Read, written: WrittenLog) -> None:
    written.write("".join(f"{number} needle\nhay\n" for number in range(25)))
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        told = read(q="needle", limit=10, offset=offset).json()
        found += [match["text"] for match in told["matches"]]
        offset = told["next_offset"]
    assert found == [f"{number} needle" for number in range(25)]


def test_log_search_out_of_time_returns_partial_result(written: WrittenLog) -> None:
    written.write(b"needle\n" + b"hay\n" * log_search.PIECE)
    first = log_search.search(written.stream, "needle", 0, 10, seconds=0)
    assert [match.offset for match in first.found] == [0]
    assert first.next_offset is not None
    assert first.next_offset < written.path.stat().st_size


@pytest.mark.parametrize("begin", [b"", b"\n"])
def test_log_search_finds_match_across_pieces_once(written: WrittenLog, begin: bytes) -> None:
    before = b"y" * (log_search.PIECE - 3 - len(begin)) + begin
    written.write(before + b"needle" + b"y" * log_search.PIECE)
    [match] = log_search.search(written.stream, "needle", 0, 10).found
    assert match.offset == len(before) if begin else match.offset <= len(before)
    assert "needle" in match.text


def test_log_search_of_endless_line_returns_bounded_excerpt(written: WrittenLog) -> None:
    written.write(b"z" * (4 * log_search.LONGEST_LINE + 4 * log_search.PIECE) + b"needle")
    [match] = log_search.search(written.stream, "needle", 0, 10).found
    assert len(match.text) <= log_search.EXCERPT
    assert match.text.endswith("needle")


def test_log_search_skips_removed_part_with_correct_offsets(written: WrittenLog, cut: bytes) -> None:
    found = log_search.search(written.stream, "line 009", 0, 1000).found
    assert found
    assert all(cut[match.offset :].startswith(match.text.encode()) for match in found)


def test_raw_log_behind_symlink_is_not_read(read: Read, written: WrittenLog) -> None:
    secret = log_store.jobs_root() / "secret"
    secret.write_text("not yours\n")
    written.path.unlink()
    written.path.symlink_to(secret)
    assert (read().content, where(read())[3]) == (b"", "gone")
    assert read(download=1).content == b""
    assert read(q="yours").json()["matches"] == []
