"""What a cluster runs that was not submitted here is never free, and is shown."""

from __future__ import annotations

from dataclasses import replace

from jobs.backends.base import Gpu
from jobs.models import Job
from jobs.scheduling import reconcile
from jobs.spec import Resources, RoleSpec
from jobs.states import ReasonCode, State
from quotas.amounts import Amounts
from quotas.ledger import reports
from quotas.models import Node
from tests.jobs.conftest import Place, queued, spec
from tests.jobs.engine import MemoryEngine

GPUS = tuple(Gpu(index, "A100") for index in range(4))


def sent(place: Place, gpus: int) -> Job:
    role = RoleSpec(name="w", command="true", resources=Resources(gpus=gpus, gpu_type="A100"))
    job = queued(place, spec(roles=(role,)))
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    return job


def told(place: Place, engine: MemoryEngine, *, free: tuple[int, ...], cpu: int = 64_000) -> Node:
    engine.node = replace(engine.node, gpus=GPUS, free_gpus=free, free_cpu_milli=cpu)
    reconcile.take_inventory(place.cluster.pk)
    return Node.objects.get()


def test_external_usage_blocks_jobs_until_freed(place: Place, engine: MemoryEngine) -> None:
    node = told(place, engine, free=(0,), cpu=60_000)
    assert Amounts.from_json(node.others) == Amounts(4000, 0, {"A100": 3})
    job = sent(place, 2)
    assert (job.state, job.reason_code) == (State.QUEUED, ReasonCode.WAITING_CAPACITY)
    [use] = reports.nodes_of([place.cluster])
    assert (use.held.gpu_count, use.held.cpu_milli, use.has_others) == (3, 4000, True)
    told(place, engine, free=(0, 1, 2, 3))
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.PENDING


def test_own_usage_is_not_counted_as_external(place: Place, engine: MemoryEngine) -> None:
    told(place, engine, free=(0, 1, 2, 3))
    assert sent(place, 3).state == State.PENDING
    node = told(place, engine, free=(3,), cpu=60_000)
    held = reports.nodes_of([place.cluster])[0].holdings[0].amounts
    assert Amounts.from_json(node.others) == Amounts(4000 - held.cpu_milli, 0, {})
    assert sent(place, 1).state == State.PENDING, "one is free"


def test_own_job_ending_during_inventory_is_not_counted_as_external(
    place: Place, engine: MemoryEngine
) -> None:
    told(place, engine, free=(0, 1, 2, 3))
    job = sent(place, 3)
    asked = engine.inventory

    def and_it_ends() -> object:
        seen = asked()
        handle = next(iter(engine.jobs))
        engine.run(handle)
        engine.succeed(handle)
        reconcile.observe(place.cluster.pk)
        return seen

    engine.inventory = and_it_ends  # type: ignore[method-assign, assignment]  # in the middle of it
    node = told(place, engine, free=(3,))
    job.refresh_from_db()
    assert job.state == State.SUCCEEDED
    assert Amounts.from_json(node.others).gpu_count == 0
