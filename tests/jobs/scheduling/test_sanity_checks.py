"""Sanity checks as observed: a phase of the job, a stored result, a reason, and nodes that are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from jobs.backends.base import Handle
from jobs.messages import reason_message
from jobs.messages.events import event_message
from jobs.models import Attempt, Event, Job, SanityCheck
from jobs.node.frameworks import sanity
from jobs.scheduling import reconcile
from jobs.spec import Check, FaultTolerance, JobSpec, RetryPolicy, RoleSpec
from jobs.states import Phase, ReasonCode, ReplicaState, State
from quotas.models import Admission, Cluster, Node, Request
from tests.jobs.conftest import Place, attempt_of, queued, spec
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db

RETRIED = RetryPolicy(limit=3)


def checked(arguments: str = "", **changes: Any) -> JobSpec:
    roles = (RoleSpec(name="worker", command="true", replicas=2),)
    return spec(**{"roles": roles, "sanity_check": Check(enabled=True, arguments=arguments), **changes})


def result(status: str, *failed: Mapping[str, Any], phase: str = "DeviceCheck") -> dict[str, Any]:
    times = {"started_at": 1_700_000_000.5, "finished_at": None if status == "Running" else 1_700_000_001.0}
    return {
        "status": status,
        "phases": [{"phase": phase, "status": status, "message": "<b>", **times}],
        "checks": [{"check": "disk", "status": status, "detail": "5 MiB/s"}],
        "failed": list(failed),
    }


FULL = {"check": "disk", "detail": "No space left on device", "ranks": [1]}


def begin(place: Place, engine: MemoryEngine, job: Job, *results: dict[str, Any]) -> Handle:
    """Run the job's attempt up to these results of its replicas, on a node for each."""
    Request.objects.update(not_before=None)
    reconcile.drain(place.cluster.pk)
    handle = Handle(attempt_of(job).handle)
    engine.run(handle)
    show(engine, handle, *results)
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    return handle


def show(engine: MemoryEngine, handle: Handle, *results: dict[str, Any]) -> None:
    seen = engine.jobs[handle]
    replicas = tuple(
        replace(each, sanity=found, node=f"node-{each.index}")
        for each, found in zip(seen.replicas, results, strict=True)
    )
    engine.jobs[handle] = replace(seen, replicas=replicas, version=f"{seen.version}0")


def fail(place: Place, engine: MemoryEngine, job: Job, handle: Handle) -> None:
    """Let the check of the second replica fail, and with it the attempt."""
    engine.fail(handle)
    show(engine, handle, result("Failed", FULL), result("Failed", FULL))
    seen = engine.jobs[handle]
    ended = tuple(replace(each, exit_code=sanity.EXIT_CODE) for each in seen.replicas)
    engine.jobs[handle] = replace(seen, replicas=ended)
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()


def sent(engine: MemoryEngine, job: Job) -> JobSpec:
    return engine.submissions[attempt_of(job).key].spec


def test_check_is_a_phase_of_the_running_job_and_stored(place: Place, engine: MemoryEngine) -> None:
    job = queued(place, checked())
    handle = begin(place, engine, job, result("Running"), result("Running"))
    assert (job.state, job.phase) == (State.RUNNING, Phase.SANITY_CHECKING)
    assert reason_message(job.reason_code, job.reason_params) == "Checking the nodes: Devices of each node."
    check = SanityCheck.objects.get(attempt__job=job)
    assert (check.status, check.phases[0]["phase"]) == ("Running", "DeviceCheck")
    passed = result("Succeeded", phase="AllNodeCommCheck")
    show(engine, handle, passed, passed)
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    check.refresh_from_db()
    assert (job.phase, check.status, check.failed_nodes) == (Phase.RUNNING, "Succeeded", [])
    assert reason_message(job.reason_code, job.reason_params) == "Running."
    show(engine, handle, result("Failed", FULL), passed)  # what the job writes there later changes nothing
    reconcile.observe(place.cluster.pk)
    check.refresh_from_db()
    assert check.status == "Succeeded"


def test_failed_check_names_node_and_check_and_is_retried_elsewhere(
    place: Place, engine: MemoryEngine
) -> None:
    job = queued(place, checked(retry=RETRIED))
    handle = begin(place, engine, job, result("Running"), result("Running"))
    fail(place, engine, job, handle)
    assert (job.state, job.attempt_number) == (State.QUEUED, 2)
    first = Attempt.objects.get(job=job, number=1)
    assert first.reason_code == ReasonCode.SANITY_CHECK_FAILED
    assert reason_message(first.reason_code, first.reason_params) == (
        "Node node-1 failed the sanity check (disk): No space left on device"
    )
    event = Event.objects.get(job=job, kind=Event.Kind.FAULT)
    assert event_message(Event.Kind.FAULT, event.params) == (
        "Sanity check failed",
        "node-1: disk: No space left on device",
    )
    check = SanityCheck.objects.get(attempt=first)
    assert (check.status, check.failed_nodes) == ("Failed", ["node-1"])
    assert check.replicas[0]["name"] == "worker-1"
    Cluster.objects.update(admission=Admission.ENGINE)
    Node.objects.bulk_create(Node(cluster=place.cluster, name=f"node-{index}") for index in range(3))
    begin(place, engine, job, result("Running"), result("Running"))
    again = sent(engine, job)
    assert again.sanity_check.enabled
    assert [role.nodes.never for role in again.roles] == [("node-1",)]


def test_only_node_of_a_cluster_is_not_left_out(place: Place, engine: MemoryEngine) -> None:
    Node.objects.update(name="node-1")
    job = queued(place, checked(retry=RETRIED))
    fail(place, engine, job, begin(place, engine, job, result("Running"), result("Running")))
    begin(place, engine, job, result("Running"), result("Running"))
    assert [role.nodes.never for role in sent(engine, job).roles] == [()]


@pytest.mark.parametrize(
    ("arguments", "is_checked"), [("", False), ("--sanity-check-timing=AfterJobFaultTolerant", True)]
)
def test_later_attempt_is_checked_where_the_job_asks_for_it(
    place: Place, engine: MemoryEngine, arguments: str, is_checked: bool
) -> None:
    job = queued(place, checked(arguments, retry=RETRIED))
    handle = begin(place, engine, job, result("Succeeded"), result("Succeeded"))
    assert sent(engine, job).sanity_check.enabled
    engine.fail(handle)
    reconcile.observe(place.cluster.pk)
    begin(place, engine, job, result("Running"), result("Running"))
    assert job.attempt_number == 2
    assert sent(engine, job).sanity_check.enabled is is_checked


def test_failed_check_of_tolerant_job_is_the_platforms_until_it_repeats(
    place: Place, engine: MemoryEngine
) -> None:
    tolerant = FaultTolerance(enabled=True, arguments="--enable-job-restart=True --max-num-of-job-restart=0")
    job = queued(place, checked(fault_tolerance=tolerant))
    for _attempt in range(3):
        fail(place, engine, job, begin(place, engine, job, result("Running"), result("Running")))
    assert (job.state, job.attempt_number) == (State.FAILED, 3)
    rules = [
        event.params["rule"] for event in Event.objects.filter(job=job, kind=Event.Kind.FAULT).order_by("pk")
    ]
    assert rules == ["platform", "platform", "same_error"]
    assert job.reason_code == ReasonCode.SANITY_CHECK_FAILED


def test_stopped_check_ends_as_the_person_wants(place: Place, engine: MemoryEngine) -> None:
    job = queued(place, checked())
    handle = begin(place, engine, job, result("Running"), result("Running"))
    engine.end_stopped(handle)
    show(engine, handle, result("Running"), result("Running"))
    reconcile.observe(place.cluster.pk)
    job.refresh_from_db()
    assert job.state == State.STOPPED
    assert SanityCheck.objects.get(attempt__job=job).status == "Stopped"


def test_replicas_that_failed_show_the_reason(place: Place, engine: MemoryEngine) -> None:
    job = queued(place, checked())
    fail(place, engine, job, begin(place, engine, job, result("Running"), result("Running")))
    assert job.state == State.FAILED
    rows = attempt_of(job).replicas.filter(state=ReplicaState.FAILED)
    assert {row.reason_code for row in rows} == {ReasonCode.SANITY_CHECK_FAILED}


def test_page_shows_the_newest_check(place: Place, engine: MemoryEngine, client: Client) -> None:
    job = queued(place, checked())
    begin(place, engine, job, result("Running"), result("Running"))
    client.force_login(place.owner)
    page = client.get(f"/jobs/{job.public_id}/?tab=overview", follow=True).content.decode()
    section = page.partition('id="sanity-title"')[2].partition("</section>")[0]
    assert "Devices of each node" in section
    assert "&lt;b&gt;" in section
    assert "worker-1 (node-1)" in section
