"""Failed replicas that are started again alone, decided by the table, on this machine and on Slurm."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from django.conf import LazySettings
from django.utils import timezone

from jobs.backends.base import Handle
from jobs.logs import log_store
from jobs.messages.events import event_message
from jobs.models import Event, Job, Replica, ReplicaRestart
from jobs.node.supervisor import restart_lines
from jobs.scheduling import reconcile
from jobs.spec import FaultTolerance, RestartScope
from jobs.states import EndKind, ReasonCode, ReplicaState, State
from quotas.models import Node, NodeState
from tests.jobs.conftest import Place, attempt_of, queued, spec
from tests.jobs.engine import MemoryEngine
from tests.jobs.scheduling.fault_site import FaultSite, decisions, is_over, site

__all__ = ["site"]

pytestmark = pytest.mark.django_db

RESTARTS: Final = "--enable-job-restart=True --max-num-of-job-restart=5"
FAILS_ONCE: Final = """
echo "$RANK" >> FOLDER/begun
if [ "$RANK" = 1 ]; then
  [ "$(grep -c 1 FOLDER/begun)" -gt 1 ] || kill -9 $$
  touch FOLDER/done
fi
until [ -e FOLDER/done ]; do sleep 0.2; done
"""
"""The second rank is killed, then goes on; the first one waits for it."""

OWN_ERROR: Final = """
echo "$RANK" >> FOLDER/begun
[ "$RANK" = 0 ] || { echo 'ValueError: no such model'; exit 1; }
exec sleep 600
"""


def submit(site: FaultSite, name: str, command: str) -> Job:
    folder = site.judge / name
    folder.mkdir()
    folder.chmod(0o777)
    return site.submit(name, command.replace("FOLDER", str(folder)), RESTARTS, scope=RestartScope.REPLICA)


def begun(site: FaultSite, job: Job) -> list[str]:
    return sorted((site.judge / job.name / "begun").read_text().split())


@pytest.mark.once
def test_failed_replica_is_restarted_alone_unless_it_is_its_own_error(site: FaultSite) -> None:
    alone, own = submit(site, "alone", FAILS_ONCE), submit(site, "own", OWN_ERROR)
    site.follow([alone, own], is_over)

    assert (alone.state, alone.attempt_number) == (State.SUCCEEDED, 1)
    assert decisions(alone) == [("signalled", "restarts_left", True)]
    assert begun(site, alone) == ["0", "1", "1"]
    states = Replica.objects.filter(attempt__job=alone).values_list("state", flat=True)
    assert set(states) == {ReplicaState.SUCCEEDED.value}
    event = Event.objects.get(job=alone, kind=Event.Kind.FAULT)
    expected = "Ended by a signal: only worker-1 is restarted (1 of 5)"
    assert event_message(Event.Kind.FAULT, event.params)[0] == expected

    assert (own.state, own.attempt_number) == (State.FAILED, 1)
    assert decisions(own) == [("python", "own_error", False)]
    assert begun(site, own) == ["0", "1"]


# --- by the table, at an engine in memory ----------------------------------------------------------------


@pytest.fixture
def log() -> Iterator[Path]:
    """The log of all replicas."""
    folder = log_store.jobs_root() / "replica-restarts"
    folder.mkdir(parents=True)
    yield folder / "output"
    shutil.rmtree(folder)


def start(place: Place, engine: MemoryEngine, log: Path, arguments: str = RESTARTS) -> tuple[Job, Handle]:
    """Let a job of two replicas run, whose replicas are restarted alone."""
    tolerance = FaultTolerance(enabled=True, arguments=arguments, restart_scope=RestartScope.REPLICA)
    whole = spec(fault_tolerance=tolerance)
    roles = tuple(role.model_copy(update={"replicas": 2}) for role in whole.roles)
    job = queued(place, whole.model_copy(update={"roles": roles}))
    reconcile.drain(place.cluster.pk)
    handle = Handle(attempt_of(job).handle)
    log.touch()
    replicas = tuple(replace(each, log_path=str(log)) for each in engine.jobs[handle].replicas)
    engine.jobs[handle] = replace(engine.jobs[handle], replicas=replicas)
    engine.run(handle)
    reconcile.observe(place.cluster.pk)
    return job, handle


def fail(place: Place, engine: MemoryEngine, handle: Handle, run: int, *, index: int = 1) -> None:
    """Let a replica fail, and the pause before its restart pass."""
    engine.fail_replica(handle, index, run, ReasonCode.EXIT_CODE)
    reconcile.observe(place.cluster.pk)
    ReplicaRestart.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    reconcile.observe(place.cluster.pk)


def orders(engine: MemoryEngine) -> list[tuple[str, int, int, bool]]:
    """Return the orders, of those that are repeated one."""
    return list(dict.fromkeys(engine.restart_orders))


def test_order_waits_for_the_pause_and_is_repeated_until_it_is_obeyed(
    place: Place, engine: MemoryEngine, log: Path
) -> None:
    job, handle = start(place, engine, log)
    engine.fail_replica(handle, 1, 1, ReasonCode.EXIT_CODE)
    reconcile.observe(place.cluster.pk)
    assert engine.restart_orders == [], "a second has to pass first"
    ReplicaRestart.objects.update(due_at=timezone.now())
    for _ in range(2):
        reconcile.observe(place.cluster.pk)
    role = job.file.spec.roles[0].name
    assert engine.restart_orders == [(role, 1, 1, True)] * 2
    assert ReplicaRestart.objects.count() == 1
    assert len(decisions(job)) == 1
    job.refresh_from_db()
    assert job.state == State.RUNNING


def test_restarts_of_each_replica_are_counted_alone(place: Place, engine: MemoryEngine, log: Path) -> None:
    job, handle = start(place, engine, log, "--max-num-of-unconditional-retry=1")
    fail(place, engine, handle, 1, index=0)
    fail(place, engine, handle, 1, index=1)
    assert [row[1:] for row in decisions(job)] == [("restarts_left", True)] * 2
    fail(place, engine, handle, 2, index=1)
    assert orders(engine)[-1][1:] == (1, 2, False)
    engine.fail(handle)  # the attempt, as its replica is not restarted
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    assert (job.state, job.attempt_number) == (State.FAILED, 1)
    assert [row[1:] for row in decisions(job)][2:] == [("restarts_spent", False)]


def test_same_error_of_a_replica_three_times_is_not_restarted(
    place: Place, engine: MemoryEngine, log: Path
) -> None:
    _job, handle = start(place, engine, log)
    for run in (1, 2, 3):
        lines = ("ERROR the same", f"{restart_lines.TEXT} {run}", f"ERROR shard {run} is lost")
        log.write_text("\n".join(lines))
        fail(place, engine, handle, run)
    assert [order[3] for order in orders(engine)] == [True, True, False]
    faults = ReplicaRestart.objects.order_by("pk").values_list("fault", flat=True)
    assert [fault["line"] for fault in faults] == [f"ERROR shard {run} is lost" for run in (1, 2, 3)]


def test_fault_of_the_node_restarts_the_whole_job(place: Place, engine: MemoryEngine, log: Path) -> None:
    _job, handle = start(place, engine, log)
    Node.objects.update(state=NodeState.CORDONED, state_why="bad fan")
    fail(place, engine, handle, 1)
    assert [order[3] for order in orders(engine)] == [False]


def test_restarts_in_a_day_are_bounded_and_an_ending_attempt_restarts_nothing(
    place: Place, engine: MemoryEngine, log: Path, settings: LazySettings
) -> None:
    job, handle = start(place, engine, log)
    attempt = attempt_of(job)
    type(attempt).objects.update(end_kind=EndKind.USER_STOP)
    fail(place, engine, handle, 1)
    assert not ReplicaRestart.objects.exists()
    type(attempt).objects.update(end_kind="")
    fail(place, engine, handle, 1)
    settings.CONSOLE_FAULT_RESTARTS_PER_DAY = 1
    fail(place, engine, handle, 2)
    assert [order[3] for order in orders(engine)] == [True, False]
