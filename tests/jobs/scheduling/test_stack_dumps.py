"""Stacks as evidence of a hang, requested and stored by rows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import F
from django.test import Client

from jobs.fault_tolerance.stacks import StackComparison, StackVerdict, Suspect
from jobs.messages.events import event_message
from jobs.models import Attempt, Event, Job, LogProgress, StackDump
from jobs.scheduling import fault_watch, stack_dumps
from jobs.states import EndKind
from quotas.models import Membership, Role, User
from tests.jobs.conftest import Place, attempt_of, queued
from tests.jobs.engine import MemoryEngine
from tests.jobs.scheduling.test_fault_tolerance import HANG, fault_of, logs, running, tolerant

__all__ = ["logs"]

pytestmark = pytest.mark.django_db

WAITING = StackComparison(StackVerdict.COLLECTIVE, "all_reduce", ranks=2, digest="a")
SUSPECT = StackComparison(
    StackVerdict.SUSPECTS, "all_reduce", (Suspect("worker", 0, "n1", "3", "load (x.py:3)"),), 2, "b"
)


@pytest.fixture(autouse=True)
def can_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine in memory pass for one that has sessions; the rows are answered by hand."""
    monkeypatch.setattr(stack_dumps, "_can_enter", lambda _attempt: True)


def pass_time(seconds: int) -> None:
    span = timedelta(seconds=seconds)
    LogProgress.objects.update(grew_at=F("grew_at") - span)
    Attempt.objects.update(started_at=F("started_at") - span)
    StackDump.objects.update(created_at=F("created_at") - span)
    fault_watch.watch()


def answer(comparison: StackComparison) -> None:
    rows = StackDump.objects.filter(ended_at=None)
    done = {"state": StackDump.State.DONE, "comparison": comparison.to_json(), "ended_at": F("created_at")}
    assert rows.update(**done) == 1


def silent(place: Place, engine: MemoryEngine, logs: Path, arguments: str = HANG) -> Job:
    job = queued(place, tolerant(arguments))
    running(place, engine, logs, job).write_text("step 1\n")
    fault_watch.watch()
    return job


def test_hang_is_ended_with_the_suspect_that_the_stacks_show(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    job = silent(place, engine, logs)
    pass_time(421)
    pass_time(5)
    assert (StackDump.objects.count(), attempt_of(job).end_kind) == (1, "")
    answer(SUSPECT)
    fault_watch.watch()
    attempt = attempt_of(job)
    assert (attempt.end_kind, fault_of(attempt)["role"], fault_of(attempt)["index"]) == (
        EndKind.FAULT,
        "worker",
        0,
    )


def test_hang_does_not_wait_for_stacks_that_nobody_collects(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    job = silent(place, engine, logs)
    pass_time(421)
    pass_time(61)
    assert attempt_of(job).end_kind == EndKind.FAULT


def test_ranks_that_wait_twice_in_the_same_place_are_a_hang_before_the_log_is_old(
    place: Place, engine: MemoryEngine, logs: Path
) -> None:
    job = silent(place, engine, logs, f"{HANG} --hang-detection-stack-timeout-minutes=2")
    pass_time(121)
    answer(WAITING)
    pass_time(60)
    assert StackDump.objects.count() == 1
    pass_time(61)
    answer(SUSPECT)
    pass_time(5)
    assert attempt_of(job).end_kind == "", "the ranks have moved"
    pass_time(121)
    answer(SUSPECT)
    fault_watch.watch()
    attempt = attempt_of(job)
    assert (attempt.end_kind, attempt.end_why) == (EndKind.FAULT, "120")


def test_stacks_that_cannot_be_had_are_named_once(place: Place, engine: MemoryEngine, logs: Path) -> None:
    job = silent(place, engine, logs)
    pass_time(421)
    stack_dumps.answer(place.cluster.pk)
    stack_dumps.answer(place.cluster.pk)
    row = StackDump.objects.get()
    assert row.comparison is not None
    assert "no sessions" in str(row.comparison["missing"])
    event = Event.objects.get(job=job, kind=Event.Kind.FAULT)
    assert event_message(Event.Kind.FAULT, event.params)[0] == "Stacks: none could be read"


def test_stacks_on_request_are_for_those_who_may_enter(
    place: Place, engine: MemoryEngine, logs: Path, client: Client
) -> None:
    job = silent(place, engine, logs)
    reader = User.objects.create_user("reader")
    Membership.objects.create(workspace=place.workspace, user=reader, role=Role.DEVELOPER)
    client.force_login(reader)
    assert client.post(f"/jobs/{job.public_id}/stacks").status_code == 403
    client.force_login(place.owner)
    client.post(f"/jobs/{job.public_id}/stacks")
    client.post(f"/jobs/{job.public_id}/stacks")
    row = StackDump.objects.get()
    StackDump.objects.update(
        state=StackDump.State.DONE,
        comparison=SUSPECT.to_json(),
        report="<b>worker-0</b>",
        ended_at=F("created_at"),
    )
    page = client.get(f"/jobs/{job.public_id}/?tab=replicas").content.decode()
    assert "which wait in all_reduce" in page
    assert "worker-0 (rank 3 on n1) is in load (x.py:3)" in page
    report = client.get(f"/jobs/{job.public_id}/stacks/{row.pk}")
    assert (report.content, report.headers["Content-Type"]) == (
        b"<b>worker-0</b>",
        "text/plain; charset=utf-8",
    )
    listed = client.get(f"/api/console/v1/jobs/{job.public_id}/stacks").json()
    assert [(each["id"], each["verdict"]) for each in listed["stacks"]] == [(row.pk, "suspects")]
    shown = client.get(f"/api/console/v1/jobs/{job.public_id}/stacks/{row.pk}").json()
    assert shown["report"] == "<b>worker-0</b>"
    client.force_login(reader)
    assert client.get(f"/jobs/{job.public_id}/stacks/{row.pk}").status_code == 403
