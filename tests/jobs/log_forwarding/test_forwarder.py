"""From a job's log to a log server: at least once, in order, whatever fails; the servers are real ones."""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, Settings

from jobs import faults, log_forwarding
from jobs.log_forwarding import batches, forwarder, lines
from jobs.logs import log_store, redaction
from jobs.models import Job, LogCursor, LogSink, LogStream
from jobs.spec import RoleSpec
from jobs.states import State
from quotas.models import Quota
from tests.factories import attempt_of, make_job, make_quota, make_spec
from tests.jobs.log_forwarding.stand_ins import ElasticsearchStandIn, LokiStandIn
from tests.jobs.receivers import Came, Receiver, accepted, receiving
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver(settings: Settings, tmp_path: Path) -> Iterator[Receiver]:
    settings.CONSOLE_SHARED_FOLDER = tmp_path
    settings.STORAGES = settings.STORAGES | {
        "logs": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "logs"},
        }
    }
    with receiving() as found:
        settings.CONSOLE_EGRESS_HOSTS = [f"http://127.0.0.1:{found.port}"]
        yield found


@pytest.fixture
def quota(db: None) -> Quota:
    return make_quota()


def make_sink(receiver: Receiver, quota: Quota, format_: str = "ndjson", **columns: Any) -> LogSink:
    """A sink of the quota's workspace that was there before any job."""
    made = LogSink(
        workspace=quota.workspace, name=f"sink-{format_}", url=receiver.url("/in"), format=format_, **columns
    )
    made.encrypt("s3cret" if made.auth != LogSink.Auth.NONE else "")
    made.save()
    LogSink.objects.filter(pk=made.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    return made


def start(quota: Quota, replicas: int = 1) -> Job:
    """A running job whose logs are followed, as `observations.lay_out` has them followed."""
    spec = make_spec(roles=(RoleSpec(name="main", command="train", replicas=replicas),))
    job = make_job(State.RUNNING, quota=quota, spec=spec)
    for stream in LogStream.objects.filter(attempt__job=job):
        path = log_store.jobs_root() / job.public_id / f"main-{stream.index}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        LogStream.objects.filter(pk=stream.pk).update(live_path=log_store.relative_to_root(str(path)))
    log_forwarding.follow([attempt_of(job)], 1)
    return job


def append(job: Job, data: bytes, index: int = 0) -> None:
    with (log_store.jobs_root() / job.public_id / f"main-{index}").open("ab") as file:
        file.write(data)


def end(job: Job, *, sealed: bool = True) -> None:
    """The job's logs are complete and, if `sealed`, stored."""
    for stream in LogStream.objects.filter(attempt__job=job):
        log_store.finish(stream)
        if sealed:
            stream.refresh_from_db()
            log_store.seal(stream)


def make_due() -> None:
    """Let the pauses and leases be over."""
    LogSink.objects.update(due_at=timezone.now() - timedelta(seconds=1), lease_until=None)


def records(receiver: Receiver) -> list[dict[str, Any]]:
    """What came as JSON lines."""
    return [json.loads(line) for came in receiver.came for line in came.body.decode().splitlines()]


def messages(receiver: Receiver) -> list[str]:
    return [record["message"] for record in records(receiver)]


def answering(status: int, **headers: str) -> Callable[[Came], tuple[int, dict[str, str], bytes]]:
    return lambda _came: (status, {name.replace("_", "-"): value for name, value in headers.items()}, b"why")


def test_forwarder_sends_new_lines_with_their_job_and_nothing_twice(
    receiver: Receiver, quota: Quota, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    old = make_job(State.RUNNING, quota=quota, created_at=timezone.now() - timedelta(hours=1))
    sink = make_sink(receiver, quota, auth="basic", username="jc", labels={"site": "lab"})
    log_forwarding.follow([attempt_of(old)], 1)
    job = start(quota)
    append(job, "eins\nzw\xf6lf\nhalf".encode("latin-1"))
    assert not log_forwarding.forward()
    first, second = records(receiver)
    assert (first["message"], first["offset"]) == ("eins", 0)
    assert (second["message"], second["offset"]) == ("zw\N{REPLACEMENT CHARACTER}lf", 5)
    assert first["time"] < second["time"]
    assert {name: first[name] for name in ("job", "owner", "workspace", "site", "role", "index", "run")} == {
        "job": job.public_id,
        "owner": job.owner.username,
        "workspace": quota.workspace.slug,
        "site": "lab",
        "role": "main",
        "index": "0",
        "run": "1",
    }
    assert base64.b64decode(receiver.came[0].headers["authorization"].split()[1]) == b"jc:s3cret"
    assert "s3cret" not in LogSink.objects.values_list("ciphertext", flat=True)[0]
    log_forwarding.forward()  # there are new bytes, but no whole line: that is noted
    with django_assert_num_queries(1):
        assert not log_forwarding.forward()
    assert log_forwarding.lags() == {(quota.workspace.slug, sink.name): 4}
    end(job)
    log_forwarding.forward()
    assert messages(receiver)[2:] == ["half"]
    assert not LogCursor.objects.exists()
    assert log_forwarding.lags() == {(quota.workspace.slug, sink.name): 0}


def test_forwarder_masks_secrets_splits_long_lines_and_bounds_batches(
    receiver: Receiver, quota: Quota, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
    make_sink(receiver, quota)
    LogSink.objects.update(batch_records=8)
    settings.CONSOLE_LOG_BATCH_KIB = 4
    job = start(quota, replicas=2)
    redaction.store_secrets([(attempt_of(job), ["tr0ub4dor"])])
    append(job, b"".join(b"line %d\n" % number for number in range(30)) + b"x" * 2500 + b"\n")
    append(job, b"password tr0ub4dor\n", index=1)
    end(job, sealed=False)
    log_forwarding.forward()
    of_first = [record for record in records(receiver) if record["index"] == "0"]
    assert [record["message"] for record in of_first[:30]] == [f"line {number}" for number in range(30)]
    assert [(len(record["message"]), record.get("partial")) for record in of_first[30:]] == [
        *((1000, True), (1000, True), (500, None))
    ]
    assert "password *********" in messages(receiver)
    assert len(receiver.came[0].body.splitlines()) == 8
    assert max(len(came.body) for came in receiver.came) < 5000


@pytest.mark.parametrize("status", [429, 503, 401, 302])
def test_forwarder_repeats_same_batch_after_failure(receiver: Receiver, quota: Quota, status: int) -> None:
    sink = make_sink(receiver, quota)
    job = start(quota)
    append(job, b"one\n")
    receiver.reply = answering(status, Retry_After="120")
    log_forwarding.forward()
    log_forwarding.forward()  # it is not due
    sink.refresh_from_db()
    pause_s = (sink.due_at - timezone.now()).total_seconds()
    assert (pause_s > 100) == (status in {429, 503})
    assert (sink.failures, sink.errors, sink.dropped_bytes, bool(sink.error)) == (1, 1, 0, True)
    append(job, b"two\n")
    receiver.reply = accepted
    make_due()
    log_forwarding.forward()
    first, second, third = receiver.came
    assert first.body == second.body
    assert json.loads(third.body)["message"] == "two"
    sink.refresh_from_db()
    assert (sink.failures, sink.errors) == (0, 1)


def test_forwarder_failing_sink_does_not_delay_another_workspace(
    receiver: Receiver, quota: Quota, settings: Settings
) -> None:
    settings.CONSOLE_EGRESS_SECONDS = 0.5
    broken, other = make_sink(receiver, quota), make_quota()
    LogSink.objects.filter(pk=broken.pk).update(url="http://127.0.0.1:1/in")  # which nobody allowed
    make_sink(receiver, other)
    for each in (quota, other):
        append(start(each), f"of {each.workspace.slug}\n".encode())
    log_forwarding.forward()
    assert messages(receiver) == [f"of {other.workspace.slug}"]
    broken.refresh_from_db()
    assert broken.error == "http"


@pytest.mark.django_db(transaction=True)
def test_forwarder_pass_does_not_wait_for_sink_that_does_not_answer(
    receiver: Receiver, quota: Quota, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer is taken down when it comes, and the batch is not sent twice."""
    monkeypatch.setattr(forwarder, "PASS_S", 2)
    settings.CONSOLE_EGRESS_SECONDS = 20
    silent, other = make_sink(receiver, quota), make_quota()
    make_sink(receiver, other)
    goes_on = threading.Event()

    def answer(came: Came) -> tuple[int, dict[str, str], bytes]:
        if quota.workspace.slug in came.body.decode():
            goes_on.wait(20)
        return 200, {}, b""

    receiver.reply = answer
    for each in (quota, other):
        append(start(each), f"of {each.workspace.slug}\n".encode())
    begun = time.monotonic()
    log_forwarding.forward()
    assert time.monotonic() - begun < 10
    assert LogCursor.objects.filter(sink=silent, offset=0).exists()
    assert LogCursor.objects.filter(offset__gt=0).exists()
    goes_on.set()
    wait_for(lambda: LogSink.objects.filter(pk=silent.pk, lease_until=None, sent_at__isnull=False).exists())
    log_forwarding.forward()
    assert sorted(messages(receiver)) == sorted(f"of {each.workspace.slug}" for each in (quota, other))


def test_forwarder_drops_only_the_record_that_is_refused_alone(receiver: Receiver, quota: Quota) -> None:
    sink = make_sink(receiver, quota)
    LogSink.objects.update(batch_records=4)
    job = start(quota)
    append(job, b"one\ntwo\npoison\nfour\nfive\n")
    taken: list[str] = []

    def reply(came: Came) -> tuple[int, dict[str, str], bytes]:
        texts = [json.loads(line)["message"] for line in came.body.decode().splitlines()]
        if "poison" in texts:
            return 400, {}, b"bad record"
        taken.extend(texts)
        return 204, {}, b""

    receiver.reply = reply
    for _try in range(6):
        log_forwarding.forward()
        make_due()
    sink.refresh_from_db()
    assert taken == ["one", "two", "four", "five"]
    assert (sink.dropped_bytes, sink.error, sink.detail) == (7, "rejected", "400 Bad Request: bad record")


def test_forwarder_loki_batch_too_late_for_its_order_gets_new_time(receiver: Receiver, quota: Quota) -> None:
    loki = LokiStandIn()
    make_sink(receiver, quota, "loki", labels={"site": "lab"})
    job = start(quota)
    append(job, b"one\ntwo\n")
    receiver.reply = answering(503)
    log_forwarding.forward()
    loki.refuses_before_ns = batches._nanoseconds(timezone.now())
    receiver.reply = loki.reply
    for _try in range(2):
        make_due()
        log_forwarding.forward()
    append(job, b"three\n")
    log_forwarding.forward()
    assert [line["message"] for line in loki.lines()] == ["one", "two", "three"]
    (labels,) = map(dict, loki.streams)
    assert (labels["job"], labels["site"], labels["role"]) == (job.public_id, "lab", "main")


def test_forwarder_elasticsearch_reads_each_documents_status(receiver: Receiver, quota: Quota) -> None:
    elastic = ElasticsearchStandIn(busy=1)
    sink = make_sink(receiver, quota, "elasticsearch", auth="bearer")
    job = start(quota)
    append(job, b"one\ntwo\npoison\nfour\n")
    receiver.reply = elastic.reply
    log_forwarding.forward()
    sink.refresh_from_db()
    assert (sink.error, sink.dropped_bytes, len(elastic.documents)) == ("busy", 0, 2)
    make_due()
    log_forwarding.forward()
    sink.refresh_from_db()
    assert sorted(document["message"] for document in elastic.documents.values()) == ["four", "one", "two"]
    assert (sink.error, sink.dropped_bytes, sink.failures) == ("rejected", 7, 0)
    assert receiver.came[0].headers["authorization"] == "Bearer s3cret"
    make_due()
    receiver.reply = lambda _came: (200, {}, b"<html>")
    append(job, b"five\n")
    log_forwarding.forward()
    sink.refresh_from_db()
    assert (sink.error, LogCursor.objects.get().batch_end) == ("answer", 25)


def test_forwarder_answers_requested_test_of_disabled_sink(receiver: Receiver, quota: Quota) -> None:
    sink = make_sink(receiver, quota, enabled=False)
    append(start(quota), b"one\n")
    LogSink.objects.update(test_requested_at=timezone.now())
    receiver.reply = answering(403)
    assert not log_forwarding.forward()
    sink.refresh_from_db()
    assert messages(receiver) == [forwarder.TEST_TEXT]
    assert (sink.test_error, sink.test_requested_at, sink.failures) == ("rejected", None, 0)
    assert sink.tested_at is not None


class Killed(BaseException):
    """Stands for the end of the process at a fault point: nothing after it happens."""


Step = tuple[str, bytes]
STEPS = st.one_of(
    st.tuples(st.just("append"), st.text("ab\xe9\n", max_size=12).map(str.encode)),
    st.tuples(st.sampled_from(("kill before", "kill after", "503", "400", "pass", "complete")), st.just(b"")),
)


@hypothesis_settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(STEPS, max_size=12))
def test_forwarder_sink_gets_every_line_in_order_whatever_fails(
    receiver: Receiver, quota: Quota, monkeypatch: pytest.MonkeyPatch, steps: list[Step]
) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 6)
    LogSink.objects.all().delete()
    make_sink(receiver, quota)
    job, written, is_open, taken = start(quota), b"", True, list[dict[str, Any]]()

    def take(came: Came) -> tuple[int, dict[str, str], bytes]:
        taken.extend(json.loads(line) for line in came.body.decode().splitlines())
        return 204, {}, b""

    def run(step: str) -> None:
        def fall(point: str) -> None:
            if step.startswith("kill") and point == f"forward.{step.split()[1]}_post":
                raise Killed

        monkeypatch.setattr(forwarder, "fault", fall)
        receiver.reply = answering(int(step)) if step.isdigit() else take
        make_due()
        with suppress(Killed):
            log_forwarding.forward()

    for step, data in steps:
        if step == "append" and is_open:
            append(job, data)
            written += data
        elif step == "complete":
            is_open = False
            end(job, sealed=False)
        elif step != "append":
            run(step)
    end(job)
    run("pass")
    assert not LogCursor.objects.exists()
    assert join_by_offset(taken) == written.decode().removesuffix("\n")
    assert is_in_order([record["offset"] for record in taken])


def join_by_offset(taken: list[dict[str, Any]]) -> str:
    """The log's text: each record once, by its offset."""
    once = {record["offset"]: record for record in taken}
    texts = [once[at]["message"] + ("" if once[at].get("partial") else "\n") for at in sorted(once)]
    return "".join(texts).removesuffix("\n")


def is_in_order(offsets: list[int]) -> bool:
    """Nothing is passed over: whatever goes back repeats all that follows."""
    first_seen = list(dict.fromkeys(offsets))
    return first_seen == sorted(first_seen)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("point", "times"), [("forward.before_post", 1), ("forward.after_post", 2)])
def test_forwarder_killed_around_post_repeats_at_most_that_batch(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, times: int
) -> None:
    quota = make_quota()
    make_sink(receiver, quota)
    job = start(quota)
    append(job, b"one\n")
    log_forwarding.forward()
    append(job, b"two\nthree\n")
    monkeypatch.setattr(faults, "FOLDER", str(tmp_path))
    monkeypatch.setattr(faults, "_held", os.open(tmp_path, os.O_RDONLY))
    (tmp_path / point).write_text("KILL")
    connection.close()
    worker = os.fork()
    if not worker:
        log_forwarding.forward()
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(worker, 0)[1]) == signal.SIGKILL
    log_forwarding.forward()  # the dead worker's lease still holds
    assert len(receiver.came) == times
    make_due()
    log_forwarding.forward()
    assert [came.body.count(b"\n") for came in receiver.came] == [1, *[2] * times]
    assert len({came.body for came in receiver.came}) == 2
