"""The merged logs on the wire: each line once, whoever comes when, and within a person's limit of streams."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import LazySettings

from jobs.logs import log_store
from jobs.models import Job, LogStream
from jobs.states import State
from quotas.models import User
from tests.factories import attempt_of, make_replica
from tests.jobs.live.conftest import People
from tests.serving import EventReader, listening

SignIn = Callable[[User], httpx.Client]


class TwoLogs:
    """The live logs of two replicas of a job's newest run."""

    def __init__(self, job: Job) -> None:
        attempt = attempt_of(job)
        if not LogStream.objects.filter(attempt=attempt, role="main", index=1).exists():
            make_replica(attempt, "main", 1)
        self._paths: list[Path] = []
        for index in range(2):
            path = log_store.jobs_root() / job.public_id / str(attempt.number) / f"{index}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            row = LogStream.objects.filter(attempt=attempt, role="main", index=index)
            row.update(live_path=log_store.relative_to_root(str(path)))
            self._paths.append(path)

    def write(self, index: int, text: str) -> None:
        with self._paths[index].open("a") as file:
            file.write(text)


@pytest.fixture
def logs(job: Job) -> Iterator[TwoLogs]:
    yield TwoLogs(job)
    shutil.rmtree(log_store.jobs_root(), ignore_errors=True)


@pytest.fixture
def listen(sign_in: SignIn, people: People, job: Job) -> Callable[..., Any]:
    def opened(headers: dict[str, str] | None = None, **params: str) -> Any:
        query = {"merged": "1", **params}
        address = f"/jobs/{job.public_id}/stream"
        return listening(sign_in(people.owner), address, params=query, headers=headers or {})

    return opened


def read_lines(events: EventReader, count: int) -> tuple[list[tuple[str, str]], str]:
    """So many lines, each with its replica, and the id of the last event."""
    lines: list[tuple[str, str]] = []
    identity = ""
    while len(lines) < count:
        event = events.next("merged")
        lines += [(line["replica"], line["text"]) for line in event.data["lines"]]
        identity = event.identity
        assert identity == event.data["after"]
    return lines, identity


def test_merged_stream_sends_existing_and_new_lines_and_resumes(
    listen: Callable[..., Any], logs: TwoLogs
) -> None:
    logs.write(0, "one\n")
    logs.write(1, "two\npart")
    with listen() as events:
        assert read_lines(events, 2)[0] == [("main/0", "one"), ("main/1", "two")]
        logs.write(0, "three\n")
        lines, identity = read_lines(events, 1)
        assert lines == [("main/0", "three")]
    logs.write(1, " four\n")
    assert identity == "1.1.10.4"
    for again in ({"headers": {"Last-Event-ID": identity}}, {"after": identity}):
        with listen(**again) as events:
            assert read_lines(events, 1) == ([("main/1", "part four")], "1.1.10.14")


def test_merged_logs_are_downloaded_as_text(sign_in: SignIn, people: People, job: Job, logs: TwoLogs) -> None:
    logs.write(0, "one\n<b>\n")
    logs.write(1, "two\nunfinished")
    answer = sign_in(people.owner).get(f"/jobs/{job.public_id}/logs/merged", params={"download": "1"})
    assert answer.text == "- main/0 one\n- main/0 <b>\n- main/1 two\n- main/1 unfinished\n"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_merged_stream_tells_the_end_and_goes_on_with_the_next_attempt(
    listen: Callable[..., Any], job: Job, logs: TwoLogs
) -> None:
    logs.write(0, "one\n")
    LogStream.objects.filter(attempt__job=job).update(state=LogStream.State.COMPLETE)
    with listen() as events:
        read_lines(events, 1)
        second = attempt_of(job).__class__.objects.create(job=job, number=2)
        Job.objects.filter(pk=job.pk).update(attempt_number=2)
        job.refresh_from_db()
        make_replica(second, "main", 0)
        again = TwoLogs(job)
        again.write(1, "two\n")
        assert read_lines(events, 1) == ([("main/1", "two")], "2.1.0.4")
        LogStream.objects.filter(attempt=second).update(state=LogStream.State.COMPLETE)
        Job.objects.filter(pk=job.pk).update(state=State.SUCCEEDED)
        end = events.next("merged")
        assert (end.data["lines"], end.data["state"]) == ([], "complete")


def test_merged_stream_rejects_bad_cursor_stranger_and_one_too_many(
    sign_in: SignIn, people: People, job: Job, logs: TwoLogs, settings: LazySettings
) -> None:
    address = f"/jobs/{job.public_id}/stream"
    owner = sign_in(people.owner)
    assert owner.get(address, params={"merged": "1", "after": "x"}).status_code == 400
    assert owner.get(address, params={"merged": "1", "log": "main/0"}).status_code == 400
    assert sign_in(people.member).get(address, params={"merged": "1"}).status_code == 403
    assert sign_in(people.stranger).get(address, params={"merged": "1"}).status_code == 404
    settings.CONSOLE_STREAMS_PER_PERSON = 1
    with listening(owner, address, params={"merged": "1"}):
        refused = sign_in(people.owner).get(address, params={"merged": "1"})
        assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)
