"""Fault tolerance at work: failed and hanging jobs are found, explained, and restarted or ended."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from html import unescape
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
from jobs.models import Attempt, Event, FaultPattern, Job, LogProgress, LogStream, Replica
from jobs.node.supervisor.checkpoints import Checkpoint
from jobs.scheduling import fault_watch, observations, reconcile
from jobs.spec import FaultTolerance, JobSpec, RetryPolicy
from jobs.states import EndKind, ReasonCode, State
from quotas.models import Cluster, Membership, Node, NodeState, Request, Role, User
from tests.jobs.api.conftest import api
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
    return spec(fault_tolerance=FaultTolerance(enabled=True, arguments=arguments))


def spread(job_spec: JobSpec, replicas: int) -> JobSpec:
    roles = tuple(role.model_copy(update={"replicas": replicas}) for role in job_spec.roles)
    return job_spec.model_copy(update={"roles": roles})


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


def test_pattern_of_the_workspace_comes_before_the_catalogue(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    FaultPattern.objects.create(workspace=place.workspace, text="KeyError: 'shard-", origin="platform")
    job = queued(place, tolerant("--enable-job-restart=True"))
    running(place, engine, logs, job).write_text("KeyError: 'shard-7'\nValueError: after it\n")
    fail(place, engine, job)
    assert (job.state, decisions(job)) == (State.QUEUED, [("workspace_pattern", "platform", True)])


def test_lost_node_restarts_a_job_without_restarts(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = queued(place, tolerant("--enable-hang-detection=true"))
    running(place, engine, logs, job)
    fail(place, engine, job, ReasonCode.MACHINE_RESTARTED)
    assert (job.state, decisions(job)) == (State.QUEUED, [("machine_restarted", "platform", True)])


def test_unknown_failure_on_a_drained_node_is_the_platforms(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    job = queued(place, tolerant("--enable-job-restart=True"))
    for output, expected in (("Killed\n", "node_drained"), ("KeyError: 'lr'\n", "python")):
        path = running(place, engine, logs, job)
        path.write_text(output)
        Node.objects.update(schedulable=False, why="bad fan")
        fail(place, engine, job)
        Node.objects.update(schedulable=True, why="")
        assert decisions(job)[-1][0] == expected
    first = fault_of(Attempt.objects.get(job=job, number=1))
    assert (first["origin"], first["line"]) == ("platform", "memory-1: bad fan")


def test_same_error_three_times_ends_the_job(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = queued(place, tolerant("--max-num-of-unconditional-retry=9"))
    for step in range(3):
        running(place, engine, logs, job).write_text(f"ValueError: step {step} of 0x{step}f\n")
        fail(place, engine, job)
    assert job.state == State.FAILED
    assert decisions(job)[-1] == ("python", "same_error", False)


def test_job_is_not_restarted_more_often_in_a_day_than_the_setting_says(
    place: Place, engine: MemoryEngine, logs: Path, settings: Any
) -> None:
    settings.CONSOLE_FAULT_RESTARTS_PER_DAY = 1
    job = queued(place, tolerant("--enable-job-restart=True"))
    for _attempt in range(2):
        running(place, engine, logs, job)
        fail(place, engine, job, ReasonCode.NODE_LOST)
    assert decisions(job)[-1] == ("node_lost", "window_spent", False)
    event = Event.objects.filter(job=job, kind=Event.Kind.FAULT).latest("pk")
    text = "Node lost: 1 restarts within 24 hours, not restarted again"
    assert event_message(Event.Kind.FAULT, event.params)[0] == text


def test_job_without_fault_tolerance_is_not_looked_at(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = queued(place, spec(retry=RetryPolicy(limit=0)))
    running(place, engine, logs, job).write_text("ncclSystemError: socket\n")
    with CaptureQueriesContext(connection) as queries:
        fault_watch.watch()
    assert len(queries) == 1
    fail(place, engine, job)
    assert (job.state, decisions(job)) == (State.FAILED, [])


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (b"step 1\nncclSystemError: socket\nend\n", "ncclSystemError: socket"),
        (
            b"\xff\n[rank0]: Traceback (most recent call last):\n[rank0]:   x()\n[rank0]: my.Bad: 7\n",
            "[rank0]: my.Bad: 7",
        ),
        (b"ld: error: no such option\nerror: 0.25\n", "ld: error: no such option"),
        (b"mean error 3\nbye\n", ""),
    ],
)
def test_failed_job_stores_the_line_that_says_why(
    place: Place, engine: MemoryEngine, logs: Path, client: Client, output: bytes, line: str
) -> None:
    job = queued(place, spec(retry=RetryPolicy(limit=0)))
    running(place, engine, logs, job).write_bytes(output)
    fail(place, engine, job)
    fault = fault_of(attempt_of(job))
    assert (fault["line"], fault["offset"]) == (line, output.index(line.encode()) if line else None)
    Membership.objects.create(workspace=place.workspace, user=User.objects.create_user("reader"))
    for person, is_shown in ((place.owner, True), (User.objects.get(username="reader"), False)):
        client.force_login(person)
        addresses = (f"/jobs/{job.public_id}/", "/jobs/", "jobs", f"jobs/{job.public_id}")
        for address in addresses if line else ():
            answer = (client if address.startswith("/") else api(person)).get(address)
            assert (line in unescape(answer.content.decode())) is is_shown, address


def test_next_attempt_tells_its_checkpoint_and_what_was_lost_since(
    place: Place, engine: MemoryEngine, logs: Path, client: Client
) -> None:
    job = queued(place, tolerant("--enable-job-restart=True"))
    running(place, engine, logs, job)
    fail(place, engine, job, ReasonCode.NODE_LOST)
    running(place, engine, logs, job)
    first, handle = Attempt.objects.get(job=job, number=1), Handle(attempt_of(job).handle)
    assert first.ended_at is not None
    Attempt.objects.filter(pk=first.pk).update(started_at=first.ended_at - timedelta(hours=1))
    saved = Checkpoint("step-20", first.ended_at.timestamp() - 90)
    engine.jobs[handle] = replace(engine.jobs[handle], resumed=saved, version="9")
    reconcile.observe(place.cluster.pk)
    assert attempt_of(job).resumed_from == "step-20"
    event = Event.objects.get(job=job, kind=Event.Kind.RESUMED)
    assert event_message(Event.Kind.RESUMED, event.params) == ("Resumed from a checkpoint", "step-20")
    client.force_login(place.owner)
    page = client.get(f"/jobs/{job.public_id}/?tab=overview", follow=True).content.decode()
    assert "step-20" in page
    assert "1 min 30 s" in page


class Killed(BaseException):
    """The worker's end at an instruction."""


@pytest.mark.parametrize("point", ["observe.before_apply", "observe.before_commit"])
def test_worker_killed_while_it_decides_restarts_the_job_once(
    place: Place, engine: MemoryEngine, logs: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    job = queued(place, tolerant(ONE))
    running(place, engine, logs, job)
    engine.fail(Handle(attempt_of(job).handle))

    def die(at: str) -> None:
        if at == point:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(observations, "fault", die)
        with pytest.raises(Killed):
            reconcile.observe(place.cluster.pk)
    assert not decisions(job)
    for _worker in range(2):
        reconcile.observe(place.cluster.pk)
    running(place, engine, logs, job)
    assert (job.attempt_number, decisions(job)) == (2, [("exit_code", "restarts_left", True)])
    assert list(engine.starts.values()) == [1, 1]


# --- nodes ----------------------------------------------------------------------------------------------


def lose_node(place: Place, engine: MemoryEngine, job: Job, name: str) -> None:
    handle = Handle(attempt_of(job).handle)
    engine.fail(handle, ReasonCode.NODE_LOST)
    replicas = tuple(replace(each, node=name) for each in engine.jobs[handle].replicas)
    engine.jobs[handle] = replace(engine.jobs[handle], replicas=replicas)
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()


def test_next_attempt_avoids_faulty_node_which_is_cordoned_as_far_as_the_share_allows(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    for name in ("n1", "n2", "n3"):
        Node.objects.create(cluster=place.cluster, name=name, cpu_milli=64_000, memory_mib=256 * 1024)
    Cluster.objects.filter(pk=place.cluster.pk).update(cordons_faulty=True, admission="engine")
    job = queued(place, tolerant("--enable-job-restart=True"))
    avoided = []
    for name in ("n1", "n2", "n3", "memory-1"):
        running(place, engine, logs, job)
        sent = engine.submissions[attempt_of(job).key]
        avoided.append(sent.spec.roles[0].nodes.never)
        lose_node(place, engine, job, name)
    running(place, engine, logs, job)
    avoided.append(engine.submissions[attempt_of(job).key].spec.roles[0].nodes.never)
    assert avoided == [(), ("n1",), ("n1", "n2"), ("n1", "n2", "n3"), ()], "and never all of them"
    [cordoned] = Node.objects.filter(state=NodeState.CORDONED)
    assert (cordoned.name, cordoned.state_by) == ("n1", None)
    assert job.public_id in cordoned.state_why
    other = queued(place)
    reconcile.drain(place.cluster.pk)
    assert engine.submissions[attempt_of(other).key].spec.roles[0].nodes.never == ("n1",)
    events = Event.objects.filter(job=job, kind=Event.Kind.FAULT).order_by("pk")
    texts = [event_message(Event.Kind.FAULT, event.params)[0] for event in events]
    assert ["node n1 is cordoned" in text for text in texts] == [True, False, False, False]


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


def test_silent_job_that_fails_by_itself_before_it_is_stopped_has_its_own_cause(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    job = queued(place, tolerant(HANG))
    log = running(place, engine, logs, job)
    log.write_text("step 1\n")
    fault_watch.watch()
    pass_time(8)
    assert fault_of(attempt_of(job))["code"] == "hang"
    log.write_text("step 1\nncclSystemError: connection closed by socket 7\n")
    fail(place, engine, job)
    assert decisions(job) == [("nccl", "platform", True)]
    assert (job.state, job.attempt_number) == (State.QUEUED, 2)


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


def test_pattern_of_the_job_restarts_it_even_where_it_fails_first(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    about = tolerant("--enable-job-restart=True").fault_tolerance.model_copy(
        update={"patterns": (r"lost shard \d+", "^NaN$")}
    )
    job = queued(place, spread(spec(fault_tolerance=about), 2))
    running(place, engine, logs, job)
    paths = [logs / f"rank-{n}.output" for n in range(2)]
    for n, path in enumerate(paths):
        path.write_text("Lost shard 1\nlost shard\n" if n else "NaN of all\n")
        LogStream.objects.filter(index=n).update(live_path=log_store.relative_to_root(str(path)))
    fault_watch.watch()
    assert attempt_of(job).end_kind == "", "no line matches"
    with paths[1].open("a") as log:
        log.write("rank 1 lost shard 17\n")
    fault_watch.watch()
    found = fault_of(attempt_of(job))
    assert (found["code"], found["line"], found["index"]) == ("log_pattern", "rank 1 lost shard 17", 1)
    engine.end_stopped(Handle(attempt_of(job).handle))
    reconcile.observe(place.cluster.pk)
    line = "ValueError: lost shard 18\n"
    running(place, engine, logs, job).write_text(f"Traceback (most recent call last):\n{line}")
    fail(place, engine, job)
    running(place, engine, logs, job).write_text(f"Traceback (most recent call last):\n{line.lower()}")
    fail(place, engine, job)
    running(place, engine, logs, job).write_text("ValueError: shards\n")
    fail(place, engine, job)
    assert decisions(job) == [
        ("log_pattern", "restarts_left", True),
        ("log_pattern", "restarts_left", True),
        ("log_pattern", "restarts_left", True),
        ("python", "own_error", False),
    ]


def test_slow_rank_is_recorded_once_with_its_node(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = queued(place, spread(tolerant("--enable-perftracker=True"), 3))
    running(place, engine, logs, job)
    paths = [logs / f"rank-{n}.output" for n in range(3)]
    for n, path in enumerate(paths):
        path.write_text("".join(f"step={s} time={0.7 if n == 1 else 0.3}\n" for s in range(10)))
        LogStream.objects.filter(index=n).update(live_path=log_store.relative_to_root(str(path)))
        Replica.objects.filter(index=n).update(node=f"n{n}")
    fault_watch.watch()
    with paths[1].open("a") as log:
        log.write("step=11 time=0.7\n")
    fault_watch.watch()
    event = Event.objects.get(job=job, kind=Event.Kind.FAULT)
    text, detail = event_message(Event.Kind.FAULT, event.params)
    assert text == "Straggler: worker-1 on n1 is slower than the other ranks"
    assert detail == "0.7 s a step; the median of 3 ranks is 0.3 s"
    assert attempt_of(job).end_kind == ""


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
