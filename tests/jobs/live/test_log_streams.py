"""A log on the wire: every byte once and in order, whoever comes when and however it is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from jobs.lifecycle import transitions
from jobs.live import bus, followed_logs, inbox, tail
from jobs.logs import log_store
from jobs.models import Attempt, Job, LogStream
from jobs.node.wrapper.log_times import ENTRY
from jobs.states import State
from quotas.models import User
from tests.factories import attempt_of, make_replica
from tests.jobs.live.conftest import People, WrittenLog
from tests.serving import EventReader, RedisServer, listening
from tests.waiting import wait_for

SignIn = Callable[[User], httpx.Client]


@pytest.fixture
def listen(sign_in: SignIn, people: People, job: Job) -> Callable[..., Any]:
    """Listen to the log of the job's replica as its owner."""

    def opened(**params: object) -> Any:
        client = sign_in(people.owner)
        return listening(client, f"/jobs/{job.public_id}/stream", params={"log": "main/0", **params})

    return opened


Listen = Callable[..., Any]


def read_until(events: EventReader, size: int) -> str:
    """The text up to the byte `size` of the log, with its ids in step."""
    text = ""
    at = 0
    while at < size:
        event = events.next("log")
        text += event.data
        at = int(event.identity.rpartition(".")[2])
    return text


def test_log_stream_sends_existing_and_new_text(listen: Listen, written: WrittenLog) -> None:
    written.write("first\n")
    with listen() as events:
        first = events.next("log")
        assert (first.data, first.identity) == ("first\n", "1.1.6")
        written.write("second\n")
        second = events.next("log")
        assert (second.data, second.identity) == ("second\n", "1.1.13")


def test_log_stream_begins_at_requested_byte(listen: Listen, written: WrittenLog) -> None:
    written.write("first\nsecond\n")
    with listen(offset=6) as events:
        assert events.next("log").data == "second\n"


def test_log_stream_negative_offset_begins_at_line(listen: Listen, written: WrittenLog) -> None:
    written.write("first\nsecond\nthird\n")
    with listen(offset=-8) as events:
        assert events.next("log").data == "second\nthird\n"


def test_log_stream_reconnection_resumes_at_last_position(
    sign_in: SignIn, people: People, job: Job, written: WrittenLog
) -> None:
    written.write("first\nsecond\n")
    again = {"params": {"log": "main/0"}, "headers": {"Last-Event-ID": "1.1.6"}}
    with listening(sign_in(people.owner), f"/jobs/{job.public_id}/stream", **again) as events:
        assert events.next("log").data == "second\n"


def test_log_stream_puts_times_before_lines_and_resumes_between_them(
    listen: Listen, written: WrittenLog
) -> None:
    written.path.with_name(f"{written.path.name}.times").write_bytes(
        b"".join(ENTRY.pack(offset, 1_767_268_800_000 + offset) for offset in (0, 9))
    )
    written.write("first\nsecond\n")
    with listen(timestamps="true") as events:
        assert events.next("log").data == "2026-01-01T12:00:00.000Z first\n2026-01-01T12:00:00.000Z second\n"
        written.write("third\n")
        third = events.next("log")
        assert (third.data, third.identity) == ("2026-01-01T12:00:00.009Z third\n", "1.1.19")
    with listen(timestamps="true", offset=8) as events:
        assert events.next("log").data == "cond\n2026-01-01T12:00:00.009Z third\n"


def test_log_stream_never_cuts_character(listen: Listen, written: WrittenLog) -> None:
    first, second, third = "日".encode()
    written.write(bytes([first]))
    with listen() as events:
        written.write(bytes([second]))
        written.write(bytes([third]) + "本".encode()[:2])
        event = events.next("log")
        assert (event.data, event.identity) == ("日", "1.1.3")
        written.write("本".encode()[2:])
        assert events.next("log").data == "本"


def test_log_stream_marks_invalid_bytes_and_goes_on(listen: Listen, written: WrittenLog) -> None:
    with listen() as events:
        written.write(b"a\xff\x00b\n")
        event = events.next("log")
        assert (event.data, event.identity) == ("a\ufffd\x00b\n", "1.1.5")
        written.write(b"\xe6")  # the beginning of a character that never comes
        written.finish()
        assert events.next("log").data == "\ufffd"
        assert events.next().name == "end"


def test_log_stream_sends_long_log_whole_from_any_byte(listen: Listen, written: WrittenLog) -> None:
    text = "".join(f"{number} 日本語 é\n" for number in range(20_000))
    data = text.encode()
    assert len(data) > 4 * tail.SLICE
    written.write(data)
    with listen() as events:
        assert read_until(events, len(data)) == text
        written.write("more\n")
        assert events.next("log").data == "more\n"
    start = len("".join(f"{number} 日本語 é\n" for number in range(7777)).encode())
    with listen(offset=start) as events:
        assert read_until(events, len(data) + len("more\n")) == data[start:].decode() + "more\n"


def test_log_stream_sends_fast_growing_log_whole(listen: Listen, written: WrittenLog) -> None:
    line = "x" * 999 + "\n"
    with listen() as events:
        written.write("begin\n")
        assert events.next("log").data == "begin\n"
        for _burst in range(4):
            written.write(line * (tail.HURRY // 1000 + 500))
        size = written.path.stat().st_size
        assert read_until(events, size) == line * ((size - 6) // 1000)


def test_log_stream_followers_get_same_text(listen: Listen, written: WrittenLog) -> None:
    with listen() as first, listen() as second:
        for events in (first, second):
            events.next()
        for number in range(50):
            written.write(f"{number}\n")
        whole = "".join(f"{number}\n" for number in range(50))
        with listen() as third:
            for events in (first, second, third):
                assert read_until(events, len(whole)) == whole


def test_log_stream_reports_end_of_replica(listen: Listen, job: Job, written: WrittenLog) -> None:
    with listen() as events:
        written.write("done\n")
        written.finish()
        transitions.tell(job)
        assert events.next("log").data == "done\n"
        end = events.next("log", "end")
    assert (end.name, end.data, end.identity) == ("end", {"state": "complete"}, "1.1.5")


def test_log_stream_works_without_redis(
    listen: Listen, job: Job, written: WrittenLog, redis_server: RedisServer
) -> None:
    redis_server.stop()
    with listen() as events:
        written.write("still here\n")
        assert events.next("log").data == "still here\n"
        written.finish()
        assert events.next("end").data == {"state": "complete"}


def test_log_stream_sends_stored_log_from_store(listen: Listen, job: Job, written: WrittenLog) -> None:
    data = ("日" * 30_000).encode()
    written.write(data)
    written.finish()
    log_store.seal(written.stream)
    written.path.unlink()
    with listen() as events:
        assert read_until(events, len(data)) == data.decode()
        assert events.next("end").identity == f"1.1.{len(data)}"


def test_log_stream_follower_behind_reads_on_after_file_is_gone(listen: Listen, written: WrittenLog) -> None:
    text = "line\n" * 50_000
    written.write(text)
    with listen() as events:
        first = events.next("log").data
        written.finish()
        log_store.seal(written.stream)
        written.path.unlink()
        assert first + read_until(events, len(text)) == text


def test_log_stream_of_lost_log_ends(listen: Listen, written: WrittenLog) -> None:
    written.path.unlink()
    LogStream.objects.filter(pk=written.stream.pk).update(state=LogStream.State.GONE, sealed=True)
    with listen() as events:
        assert events.next("end").data == {"state": "gone"}


def test_log_stream_waits_for_replica_to_begin(
    sign_in: SignIn, people: People, job: Job, written: WrittenLog
) -> None:
    path = written.stream.live_path
    LogStream.objects.filter(pk=written.stream.pk).update(live_path="")
    with listening(
        sign_in(people.owner), f"/jobs/{job.public_id}/stream", params={"log": "main/0"}
    ) as events:
        events.next("changed")
        written.write("now\n")
        LogStream.objects.filter(pk=written.stream.pk).update(live_path=path)
        bus.publish(job.workspace_id, [bus.job_name(job.public_id)])
        assert events.next("log").data == "now\n"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[followed_logs.NewestLog]:
    """What was found whenever the rows were looked at; they are not merely because time passes."""
    found: list[followed_logs.NewestLog] = []

    def find(name: followed_logs.LogName) -> followed_logs.NewestLog:
        found.append(really(name))
        return found[-1]

    really = followed_logs.find
    monkeypatch.setattr(followed_logs, "find", find)
    monkeypatch.setattr(followed_logs, "LOOK_AGAIN_S", 3600.0)
    return found


def test_log_stream_is_not_delayed_by_pause_between_changes(
    sign_in: SignIn,
    people: People,
    job: Job,
    written: WrittenLog,
    looks: list[followed_logs.NewestLog],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbox, "LEAST_S", 3600.0)
    path = written.stream.live_path
    written.write("now\n")
    LogStream.objects.filter(pk=written.stream.pk).update(live_path="")
    address = f"/jobs/{job.public_id}/stream"
    with listening(sign_in(people.owner), address, params={"log": "main/0"}) as events:
        wait_for(lambda: len(looks) == 2)  # at first, and once it is known where the stream is
        LogStream.objects.filter(pk=written.stream.pk).update(live_path=path)
        bus.publish(job.workspace_id, [bus.job_name(job.public_id)])
        assert events.next("log").data == "now\n"


def test_log_stream_finds_file_created_after_its_path_is_known(
    listen: Listen, written: WrittenLog, looks: list[followed_logs.NewestLog]
) -> None:
    written.path.unlink()
    with listen() as events:
        wait_for(lambda: len(looks) > 4)
        written.write("now\n")
        assert events.next("log").data == "now\n"


def second_attempt(job: Job) -> WrittenLog:
    """The job is tried again."""
    Attempt.objects.filter(job=job).update(live=False)
    job.attempt_number = 2
    job.save()
    make_replica(transitions.new_attempt(job, 2))
    return WrittenLog(job)


def test_log_stream_continues_with_next_attempt(listen: Listen, job: Job, written: WrittenLog) -> None:
    written.write("one\n")
    with listen() as events:
        assert events.next("log").data == "one\n"
        written.write("and done\n")
        again = second_attempt(job)
        again.write("two\n")
        transitions.tell(job)
        assert events.next("log").data == "and done\n"
        assert events.next("attempt").data == {"attempt": 2, "run": 1}
        told = events.next("log")
        assert (told.data, told.identity) == ("two\n", "2.1.4")


def test_log_stream_reconnection_in_earlier_attempt_misses_nothing(
    sign_in: SignIn, people: People, job: Job, written: WrittenLog
) -> None:
    written.write("one\nand done\n")
    written.finish()
    second_attempt(job).write("two\n")
    again = {"params": {"log": "main/0"}, "headers": {"Last-Event-ID": "1.1.4"}}
    with listening(sign_in(people.owner), f"/jobs/{job.public_id}/stream", **again) as events:
        assert events.next("log").data == "and done\n"
        assert events.next("attempt").identity == "2.1.0"
        assert events.next("log").data == "two\n"


def test_log_stream_of_requested_attempt_sends_no_other(
    listen: Listen, job: Job, written: WrittenLog
) -> None:
    written.write("one\n")
    written.finish()
    second_attempt(job).write("two\n")
    with listen(attempt=1, run=1) as events:
        assert events.next("log").data == "one\n"
        assert events.next().name == "end"


def test_log_stream_ends_for_job_ended_before_replica_began(
    sign_in: SignIn, people: People, job: Job
) -> None:
    LogStream.objects.filter(attempt=attempt_of(job)).delete()
    Job.objects.filter(pk=job.pk).update(state=State.STOPPED)
    with listening(
        sign_in(people.owner), f"/jobs/{job.public_id}/stream", params={"log": "main/0"}
    ) as events:
        assert events.next("end").data == {"state": "gone"}


@pytest.mark.parametrize("params", [{"log": "main/x"}, {"log": "main/0", "offset": "1.5"}])
def test_log_stream_rejects_non_number_parameters(
    sign_in: SignIn, people: People, job: Job, params: dict[str, str]
) -> None:
    assert sign_in(people.owner).get(f"/jobs/{job.public_id}/stream", params=params).status_code == 400


def test_log_stream_does_not_follow_symlink(
    sign_in: SignIn, people: People, job: Job, written: WrittenLog
) -> None:
    secret = log_store.jobs_root() / "secret"
    secret.write_text("not yours\n")
    written.path.unlink()
    written.path.symlink_to(secret)
    with listening(
        sign_in(people.owner), f"/jobs/{job.public_id}/stream", params={"log": "main/0"}
    ) as events:
        LogStream.objects.filter(pk=written.stream.pk).update(state=LogStream.State.GONE, sealed=True)
        transitions.tell(job)
        assert events.next("log", "end").name == "end"
