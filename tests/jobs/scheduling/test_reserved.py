"""What is reserved is what the job gets: handed over, and booked as what the engine really gave."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.backends.base import Gpu, Handle, NodeSeen, QueuedJob, Reserved
from jobs.models import Job
from jobs.scheduling import reconcile
from jobs.spec import JobSpec, Resources, RoleSpec
from jobs.states import State
from quotas.billing import ledger_days
from quotas.models import Admission, GpuType, Node, Quota, Reservation
from tests.jobs.conftest import Place, attempt_of, queued, spec
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db

EIGHT = tuple(Gpu(index, "A100-SXM" if index < 4 else "V100") for index in range(8))


@pytest.fixture
def place(place: Place, engine: MemoryEngine) -> Place:
    """Four A100, which the engine calls otherwise, and four V100; the quota has no A100 left."""
    GpuType.objects.create(name="A100", aliases=["A100-SXM"])
    engine.node = NodeSeen("memory-1", 64_000, 256 * 1024, EIGHT, 64_000, 256 * 1024, tuple(range(8)))
    reconcile.take_inventory(place.cluster.pk)
    return place


def wants(gpus: int, kind: str = "", replicas: int = 1) -> JobSpec:
    resources = Resources(gpus=gpus, gpu_type=kind)
    return spec(roles=(RoleSpec(name="w", command="true", replicas=replicas, resources=resources),))


def sent(place: Place, job_spec: JobSpec) -> Job:
    job = queued(place, job_spec)
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.PENDING
    return job


def reservation(job: Job) -> Reservation:
    return Reservation.objects.get(request__holder=attempt_of(job).key)


def holds(engine: MemoryEngine, job: Job, *gpus: int) -> None:
    """The engine tells that the job's one replica has these GPUs."""
    handle = Handle(attempt_of(job).handle)
    engine.run(handle)
    seen = engine.jobs[handle]
    engine.jobs[handle] = replace(seen, replicas=tuple(replace(each, gpus=gpus) for each in seen.replicas))
    reconcile.observe(attempt_of(job).job.cluster_id)


def test_submission_carries_reserved_gpu_types_and_indexes(place: Place, engine: MemoryEngine) -> None:
    Quota.objects.update(gpus_by_type={"A100": 2})
    first, second = sent(place, wants(2, "A100")), sent(place, wants(2))
    given = [engine.submissions[attempt_of(job).key].reserved for job in (first, second)]
    assert given == [
        (Reserved("memory-1", {"A100-SXM": 2}, (0, 1)),),
        (Reserved("memory-1", {"V100": 2}, (4, 5)),),
    ]
    assert reservation(second).amounts["gpus"] == {"V100": 2}


def test_reservation_follows_gpus_actually_given(place: Place, engine: MemoryEngine) -> None:
    job = sent(place, wants(1))
    assert reservation(job).devices == {"memory-1": [0]}
    holds(engine, job, 7)
    row = reservation(job)
    assert (row.devices, row.amounts["gpus"]) == ({"memory-1": [7]}, {"V100": 1})
    assert row.placement[0][1]["gpus"] == {"V100": 1}
    other = sent(place, wants(1, "V100"))
    assert reservation(other).devices == {"memory-1": [4]}


def test_external_usage_is_zero_while_only_console_jobs_run(place: Place, engine: MemoryEngine) -> None:
    Quota.objects.update(gpus_by_type={"A100": 0})
    job = sent(place, wants(1))
    (given,) = engine.submissions[attempt_of(job).key].reserved
    holds(engine, job, *given.indexes)
    left = tuple(index for index in range(8) if index not in given.indexes)
    ask = Node.objects.get(name="memory-1")
    held = reservation(job).amounts
    engine.node = replace(
        engine.node,
        free_gpus=left,
        free_cpu_milli=64_000 - held["cpu_milli"],
        free_memory_mib=256 * 1024 - held["memory_mib"],
    )
    reconcile.take_inventory(place.cluster.pk)
    ask.refresh_from_db()
    assert ask.others == {"cpu_milli": 0, "memory_mib": 0, "gpus": {}}


def test_usage_is_booked_to_gpu_type_of_each_replica(place: Place, engine: MemoryEngine) -> None:
    Quota.objects.update(gpus_by_type={"A100": 1, "V100": 2})
    job = sent(place, wants(1, replicas=3))
    Reservation.objects.update(created_at=timezone.now() - timedelta(hours=1))
    row = reservation(job)
    assert row.amounts["gpus"] == {"A100": 1, "V100": 2}
    begin = row.created_at
    booked = ledger_days.tally(begin, begin + timedelta(minutes=10))
    assert {key.gpu_type: sums.gpu_seconds for key, sums in booked.items()} == {"A100": 600, "V100": 1200}


def test_reservation_takes_gpu_types_chosen_by_engine(place: Place, engine: MemoryEngine) -> None:
    place.cluster.admission = Admission.ENGINE
    place.cluster.save()
    job = sent(place, wants(2))
    assert reservation(job).amounts["gpus"] == {"": 2}
    handle = Handle(attempt_of(job).handle)
    engine.run(handle)
    reconcile.observe(place.cluster.pk)
    mine = QueuedJob("1", "j", "alice", True, handle, gpus={"A100-SXM": 2}, nodes=("memory-1",))
    engine.queue = (mine,)
    reconcile.take_inventory(place.cluster.pk)
    row = reservation(job)
    assert (row.amounts["gpus"], row.placement[0][1]["gpus"]) == ({"A100": 2}, {"A100": 2})
    engine.run(handle)
    reconcile.observe(place.cluster.pk)
    assert reservation(job).placement[0][1]["gpus"] == {"A100": 2}
