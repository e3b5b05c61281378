"""Elastic jobs begin with the replicas for which there is room, and restart with more after a checkpoint."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from jobs.backends.base import Handle, ReplicaRef
from jobs.lifecycle.pending_reasons import outlook
from jobs.messages.events import event_message
from jobs.models import Attempt, Event, Job, Replica
from jobs.node.supervisor.checkpoints import Checkpoint
from jobs.scheduling import elastic_growth, reconcile
from jobs.spec import CompletionPolicy, Framework, JobSpec, Resources, RoleSpec
from jobs.states import ReasonCode, State
from quotas.admission import Decision
from quotas.admission.whatif import Trial
from quotas.amounts import Amounts
from quotas.models import Node, Quota, Request, Reservation
from tests.jobs import engine as memory
from tests.jobs.backends.benches import LocalBench
from tests.jobs.conftest import Place, attempt_of, queued, spec
from tests.jobs.engine import MemoryEngine
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db

TRAIN = """\
echo nodes $PET_NNODES rank $RANK of $WORLD_SIZE from ${RESUME_FROM##*/}
if [ $WORLD_SIZE = 4 ]; then exit; fi
until [ -e GO ]; do sleep 0.05; done
[ $RANK != 0 ] || { echo 20 > $CHECKPOINT_DIR/.new; mv $CHECKPOINT_DIR/.new $CHECKPOINT_DIR/step-20; }
exec sleep 600
"""


def training(replicas: int = 4, least: int = 2, command: str = "true", cpu_milli: int = 1000) -> JobSpec:
    role = RoleSpec(
        name="worker",
        replicas=replicas,
        command=command,
        resources=Resources(cpu_milli=cpu_milli, memory_mib=64),
        completion=CompletionPolicy(min_failed=replicas - least + 1),
    )
    return spec(framework=Framework.ELASTIC_BATCH, roles=(role,), grace_s=2)


@pytest.fixture
def small(place: Place) -> Place:
    """Three of the four cores that the elastic jobs want."""
    Node.objects.update(cpu_milli=3000)
    return place


def test_elastic_job_starts_with_fewer_replicas_and_says_so(small: Place, engine: MemoryEngine) -> None:
    job = queued(small, training())
    reconcile.drain(small.cluster.pk)
    attempt = attempt_of(job)
    (role,) = engine.submissions[attempt.key].spec.roles
    assert (role.replicas, role.completion.min_failed) == (3, 2)
    assert [row.index for row in Replica.objects.filter(attempt=attempt).order_by("index")] == [0, 1, 2]
    assert Reservation.objects.get(request__holder=attempt.key).amounts["cpu_milli"] == 3000
    event = Event.objects.get(job=job, kind=Event.Kind.ADMITTED)
    assert event_message(Event.Kind(event.kind), event.params)[0] == "Resources reserved for 3 of 4 replicas"
    assert (job.replicas_total, job.file.spec.replicas) == (4, 4)


def test_job_that_needs_all_its_replicas_waits_for_them(small: Place, engine: MemoryEngine) -> None:
    whole = training().model_copy(update={"framework": Framework.TENSORFLOW})
    job = queued(small, whole)
    reconcile.drain(small.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.QUEUED


def test_elastic_job_put_back_starts_with_all_once_there_is_room(small: Place, engine: MemoryEngine) -> None:
    job = queued(small, training())
    engine.full = True
    reconcile.drain(small.cluster.pk)
    engine.full = False
    Node.objects.update(cpu_milli=4000)
    Request.objects.update(not_before=None)
    reconcile.drain(small.cluster.pk)
    attempt = attempt_of(job)
    assert engine.submissions[attempt.key].spec.replicas == 4
    assert Reservation.objects.get(request__holder=attempt.key).counts is None


class Saved:
    """The checkpoint that the engine names, saved so many seconds ago."""

    def __init__(self, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.age_s: float | None = None
        monkeypatch.setattr(MemoryEngine, "find_checkpoint", self._find, raising=False)

    def _find(self, _handle: Handle) -> Checkpoint | None:
        return None if self.age_s is None else Checkpoint("step-20", time.time() - self.age_s)


def running(place: Place, engine: MemoryEngine, ran: timedelta) -> Job:
    """An elastic job that has run for a while with three replicas; now there is room for all of them."""
    job = queued(place, training())
    reconcile.drain(place.cluster.pk)
    engine.run(Handle(attempt_of(job).handle))
    reconcile.observe(place.cluster.pk)
    Attempt.objects.filter(job=job).update(started_at=timezone.now() - ran)
    Node.objects.update(cpu_milli=4000)
    return job


@pytest.mark.parametrize(
    ("ran_s", "age_s", "restarted"),
    [(700, 5.0, True), (700, None, False), (700, 90.0, False), (500, 5.0, False)],
    ids=["fresh-checkpoint", "no-checkpoint", "old-checkpoint", "just-started"],
)
def test_short_job_is_restarted_just_after_a_checkpoint(
    small: Place,
    engine: MemoryEngine,
    monkeypatch: pytest.MonkeyPatch,
    ran_s: int,
    age_s: float | None,
    restarted: bool,
) -> None:
    saved = Saved(engine, monkeypatch)
    job = running(small, engine, timedelta(seconds=ran_s))
    saved.age_s = age_s
    reconcile.drain(small.cluster.pk)
    assert (attempt_of(job).end_kind == "growth") is restarted


def test_checkpoint_of_the_attempt_before_restarts_nothing(
    small: Place, engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = Saved(engine, monkeypatch)
    monkeypatch.setattr(elastic_growth, "LEAST_TIME", timedelta())
    job = running(small, engine, timedelta(seconds=20))
    saved.age_s = 30
    reconcile.drain(small.cluster.pk)
    assert attempt_of(job).end_kind == ""


def test_elastic_job_grows_from_its_checkpoint_when_another_job_ends(
    place: Place, engine: MemoryEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = LocalBench(tmp_path)
    monkeypatch.setattr(memory, "running", bench.backend)
    monkeypatch.setattr(elastic_growth, "LEAST_TIME", timedelta())
    Node.objects.update(name=bench.config.node, cpu_milli=4000)
    go = bench.judge / "go"

    def passes(job: Job, state: State) -> bool:
        Request.objects.update(not_before=None)
        reconcile.drain(place.cluster.pk)
        reconcile.observe(place.cluster.pk)
        job.refresh_from_db()
        return job.state == state

    def read(attempt: Attempt, index: int = 0) -> str:
        replica = ReplicaRef("worker", index)
        return bench.backend.read_log(Handle(attempt.handle), replica, "", 1 << 20).data.decode()

    try:
        size = Resources(cpu_milli=1000, memory_mib=64)
        other = queued(
            place,
            spec(
                roles=(RoleSpec(name="w", command=f"until [ -e {go} ]; do sleep 0.05; done", resources=size),)
            ),
        )
        wait_for(lambda: passes(other, State.RUNNING), 30)
        job = queued(place, training(command=TRAIN.replace("GO", str(go))))
        wait_for(lambda: passes(job, State.RUNNING), 30)
        first = attempt_of(job)
        wait_for(lambda: read(first), 30)
        assert read(first) == "nodes 2:3 rank 0 of 3 from\n"
        go.touch()
        wait_for(lambda: passes(other, State.SUCCEEDED), 30)
        wait_for(lambda: passes(job, State.SUCCEEDED), 60)
        second = attempt_of(job)
        first.refresh_from_db()
        assert (first.reason_code, second.number, second.resumed_from) == (ReasonCode.GROWTH, 2, "step-20")
        assert [read(second, index) for index in range(4)] == [
            f"nodes 2:4 rank {index} of 4 from step-20\n" for index in range(4)
        ]
    finally:
        bench.close()


def test_quota_that_is_full_of_others_starts_fewer_replicas(place: Place, engine: MemoryEngine) -> None:
    Quota.objects.update(cpu_milli=2000)
    job = queued(place, training())
    reconcile.drain(place.cluster.pk)
    assert engine.submissions[attempt_of(job).key].spec.replicas == 2


def test_outlook_names_the_replicas_with_which_an_elastic_job_would_start() -> None:
    decision = Decision("?", placement=(("n1", Amounts(3000)),), counts=(3,))
    assert outlook("Cluster", Trial(decision)) == "Can start now on n1, with 3 replicas."
