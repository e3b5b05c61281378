"""Fault tolerance at work: failed and hanging jobs are found, explained, and restarted or ended."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs import submission
from jobs.backends.base import Handle
from jobs.logs import log_store
from jobs.messages.events import event_message
from jobs.models import Attempt, Event, Job, LogProgress
from jobs.scheduling import fault_watch, reconcile
from jobs.spec import Check, JobSpec, RetryPolicy
from jobs.states import EndKind, ReasonCode, State
from quotas.models import Membership, Request, Role, User
from tests.jobs.conftest import Place, attempt_of, queued, spec
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db

ONE = "--max-num-of-unconditional-retry=1"
HANG = f"--enable-hang-detection=true --hang-detection-log-timeout-minutes=7 {ONE}"


@pytest.fixture
def logs() -> Iterator[Path]:
    """A folder for logs of jobs."""
    folder = log_store.jobs_root() / "fault-tolerance"
    folder.mkdir(parents=True)
    yield folder
    shutil.rmtree(folder)


def tolerant(arguments: str) -> JobSpec:
    return spec(fault_tolerance=Check(enabled=True, arguments=arguments))


def fault_of(attempt: Attempt) -> Mapping[str, Any]:
    return dict(attempt.fault or {})


def running(place: Place, engine: MemoryEngine, logs: Path, job: Job) -> Path:
    """Let the job's attempt run; return its log."""
    Request.objects.update(not_before=None)
    reconcile.drain(place.cluster.pk)
    attempt = attempt_of(job)
    handle, path = Handle(attempt.handle), logs / f"{attempt.number}.output"
    path.touch()
    replicas = tuple(replace(each, log_path=str(path)) for each in engine.jobs[handle].replicas)
    engine.jobs[handle] = replace(engine.jobs[handle], replicas=replicas)
    engine.run(handle)
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.RUNNING
    return path


def fail(place: Place, engine: MemoryEngine, job: Job, code: ReasonCode = ReasonCode.EXIT_CODE) -> None:
    engine.fail(Handle(attempt_of(job).handle), code)
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()


def decisions(job: Job) -> list[tuple[str, str, bool]]:
    rows = Event.objects.filter(job=job, kind=Event.Kind.FAULT).order_by("pk")
    return [(row.params["code"], row.params["rule"], row.params["restarts"]) for row in rows]


def test_failed_job_is_restarted_as_the_table_says(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = queued(place, tolerant("--enable-job-restart=True --max-num-of-job-restart=1"))
    running(place, engine, logs, job).write_text("step 1\nncclSystemError: connection closed by socket 7\n")
    fail(place, engine, job)
    assert (job.state, job.attempt_number) == (State.QUEUED, 2)
    running(place, engine, logs, job).write_text("Killed by something\n")
    fail(place, engine, job)
    assert job.attempt_number == 3
    running(place, engine, logs, job).write_text("Killed by something else\n")
    fail(place, engine, job)
    assert (job.state, job.attempt_number) == (State.FAILED, 3)
    assert decisions(job) == [
        ("nccl", "platform", True),
        ("exit_code", "restarts_left", True),
        ("exit_code", "restarts_spent", False),
    ]
    event = Event.objects.filter(job=job, kind=Event.Kind.FAULT).order_by("pk")[0]
    assert event_message(Event.Kind.FAULT, event.params) == (
        "NCCL error: an error of the platform, the job is restarted",
        "ncclSystemError: connection closed by socket 7",
    )
    assert fault_of(Attempt.objects.get(job=job, number=1))["role"] == "worker"


def test_attempts_of_the_job_page_tell_whose_error_it_was(
    place: Place, engine: MemoryEngine, logs: Path, client: Client
) -> None:
    job = queued(place, tolerant("--max-num-of-unconditional-retry=1"))
    running(place, engine, logs, job).write_text("ValueError: <b>\n")
    fail(place, engine, job)
    reader = User.objects.create_user("reader")
    Membership.objects.create(workspace=place.workspace, user=reader, role=Role.DEVELOPER)
    for person, is_shown in ((place.owner, True), (reader, False)):
        client.force_login(person)
        page = client.get(f"/jobs/{job.public_id}/?tab=overview", follow=True).content.decode()
        assert ("Python exception: ValueError: &lt;b&gt;" in page) is is_shown


def test_error_of_the_program_itself_is_not_restarted(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = queued(place, tolerant("--enable-job-restart=True"))
    running(place, engine, logs, job).write_text("Traceback …\nKeyError: 'lr'\n")
    fail(place, engine, job)
    assert (job.state, decisions(job)) == (State.FAILED, [("python", "own_error", False)])


def test_lost_node_restarts_a_job_without_restarts(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = queued(place, tolerant("--enable-hang-detection=true"))
    running(place, engine, logs, job)
    fail(place, engine, job, ReasonCode.MACHINE_RESTARTED)
    assert (job.state, decisions(job)) == (State.QUEUED, [("machine_restarted", "platform", True)])


def test_same_error_three_times_ends_the_job(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = queued(place, tolerant("--max-num-of-unconditional-retry=9"))
    for step in range(3):
        running(place, engine, logs, job).write_text(f"ValueError: step {step} of 0x{step}f\n")
        fail(place, engine, job)
    assert job.state == State.FAILED
    assert decisions(job)[-1] == ("python", "same_error", False)


def test_job_without_fault_tolerance_is_not_looked_at(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = queued(place, spec(retry=RetryPolicy(limit=0)))
    running(place, engine, logs, job).write_text("ncclSystemError: socket\n")
    with CaptureQueriesContext(connection) as queries:
        fault_watch.watch()
    assert len(queries) == 1
    fail(place, engine, job)
    assert (job.state, decisions(job), attempt_of(job).fault) == (State.FAILED, [], None)


# --- while it runs ---------------------------------------------------------------------------------------


def pass_time(minutes: int) -> None:
    span = timedelta(minutes=minutes)
    LogProgress.objects.update(grew_at=F("grew_at") - span)
    Attempt.objects.update(started_at=F("started_at") - span)
    fault_watch.watch()


def test_hanging_job_is_ended_and_restarted_then_fails(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    job = queued(place, tolerant(HANG))
    log = running(place, engine, logs, job)
    log.write_text("step 1\n")
    fault_watch.watch()
    pass_time(6)
    log.write_text("step 1\nstep 2\n")
    pass_time(6)
    pass_time(6)
    assert attempt_of(job).end_kind == "", "it wrote something six minutes ago"
    pass_time(2)
    assert attempt_of(job).end_kind == EndKind.FAULT
    reconcile.observe(place.cluster.pk)
    assert engine.stopped == [Handle(attempt_of(job).handle)]
    engine.end_stopped(Handle(attempt_of(job).handle))
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, job.attempt_number) == (State.QUEUED, 2)
    running(place, engine, logs, job)
    fault_watch.watch()
    pass_time(8)
    engine.end_stopped(Handle(attempt_of(job).handle))
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, job.reason_code, job.reason_params) == (State.FAILED, "hang", {"limit_s": 420})
    assert decisions(job) == [("hang", "restarts_left", True), ("hang", "restarts_spent", False)]


def test_start_is_tolerated_before_the_job_counts_as_hanging(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    job = queued(place, tolerant(f"{HANG} --hang-detection-startup-toleration-minutes=15"))
    running(place, engine, logs, job)
    Attempt.objects.update(started_at=F("created_at"))
    fault_watch.watch()
    pass_time(14)
    assert attempt_of(job).end_kind == ""
    pass_time(2)
    assert attempt_of(job).end_kind == EndKind.FAULT


def test_line_with_a_pattern_ends_the_attempt_once(place: Place, engine: MemoryEngine, logs: Path) -> None:
    arguments = f"--custom-log-patterns=timeout1 --custom-log-patterns=time-out {ONE}"
    job = queued(place, tolerant(arguments))
    log = running(place, engine, logs, job)
    log.write_bytes(b"fine\nhalf a time")
    fault_watch.watch()
    assert attempt_of(job).end_kind == ""
    log.write_bytes(b"fine\nhalf a time-out of \xff rank 3\nmore\n")
    fault_watch.watch()
    fault_watch.watch()
    attempt = attempt_of(job)
    assert (attempt.end_kind, fault_of(attempt)["line"]) == (EndKind.FAULT, "half a time-out of � rank 3")
    assert Event.objects.filter(job=job, kind=Event.Kind.END_WANTED).count() == 1
    engine.end_stopped(Handle(attempt.handle))
    reconcile.observe(place.cluster.pk)
    assert decisions(job) == [("log_pattern", "restarts_left", True)]


def test_stop_by_a_person_wins_over_a_fault(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = queued(place, tolerant(HANG))
    running(place, engine, logs, job)
    fault_watch.watch()
    submission.stop(place.owner, job)
    pass_time(30)
    engine.end_stopped(Handle(attempt_of(job).handle))
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, job.reason_code, decisions(job)) == (State.STOPPED, "user_stop", [])


def test_pass_costs_a_fixed_number_of_queries_for_any_number_of_jobs(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    for _job in range(3):
        running(place, engine, logs, queued(place, tolerant(HANG)))
    fault_watch.watch()
    LogProgress.objects.update(grew_at=F("grew_at"))
    with CaptureQueriesContext(connection) as queries:
        fault_watch.watch()
    assert len(queries) <= 4 + 3, "one more for each job that may hang"
