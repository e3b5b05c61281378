"""Admission carried out: who starts, who gives back and what becomes of them, and why the others wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from jobs import submission
from jobs.backends.base import Handle, ReplicaRef
from jobs.dialects.base import Parsed, Refused
from jobs.dialects.document import Document
from jobs.lifecycle import pending_reasons
from jobs.models import Attempt, Event, Job
from jobs.scheduling import admission, reconcile
from jobs.spec import Bid, EndSignal, Idle, JobSpec, NodeChoice, Resources, RetryPolicy, RoleSpec
from jobs.states import EndKind, ReasonCode, ReplicaState, State
from quotas.clusters import inventory
from quotas.models import (
    Admission,
    GpuType,
    Membership,
    Node,
    NodeState,
    Quota,
    Request,
    Reservation,
    Source,
    SpotPrice,
    User,
    Workspace,
)
from quotas.models.limits import LEAST_RUNNING_S
from tests.jobs import engine as memory
from tests.jobs.backends.benches import LocalBench
from tests.jobs.conftest import Place, attempt_of, spec
from tests.jobs.engine import MemoryEngine
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(place: Place) -> Place:
    """Eight GPUs; the quota of the place has six of them."""
    Node.objects.update(gpus={"A100": 8}, gpu_list=[{"index": i, "type": "A100"} for i in range(8)])
    Quota.objects.update(gpus=6)
    place.quota.refresh_from_db()
    return place


@pytest.fixture
def guests(place: Place) -> Quota:
    """Another workspace's quota on the same cluster, of two GPUs."""
    workspace = Workspace.objects.create(slug="speech", name="Speech")
    Membership.objects.create(workspace=workspace, user=place.owner)
    return Quota.objects.create(
        workspace=workspace, cluster=place.cluster, slug="guests", name="Guests", gpus=2
    )


def wants(gpus: int, name: str = "job", bid: Bid | None = None, **fields: object) -> JobSpec:
    role = RoleSpec(name="w", command="true", resources=Resources(gpus=gpus, gpu_type="A100"), bid=bid)
    return spec(name, roles=(role,), **fields)


def sent(place: Place, quota: Quota, job_spec: JobSpec) -> Job:
    return submission.store(
        place.owner, Document("{}", "openpai-v1").with_parsed(Parsed(job_spec, text="{}")), quota
    )


def drained(place: Place, *jobs: Job) -> list[str]:
    reconcile.drain(place.cluster.pk)
    return [Job.objects.get(pk=job.pk).state for job in jobs]


def handle_of(job: Job) -> Handle:
    return Handle(attempt_of(job).handle)


def running(place: Place, engine: MemoryEngine, quota: Quota, job_spec: JobSpec) -> Job:
    job = sent(place, quota, job_spec)
    assert drained(place, job) == [State.PENDING]
    engine.run(handle_of(job))
    reconcile.observe(place.cluster.pk)
    least = timezone.now() - timedelta(seconds=LEAST_RUNNING_S)  # for so long nobody has it back
    Reservation.objects.filter(request__holder=attempt_of(job).key).update(created_at=least, started_at=least)
    return job


def test_borrower_preempted_gets_own_signal_and_queues_again(
    place: Place, guests: Quota, engine: MemoryEngine
) -> None:
    warned = wants(5, idle=Idle.ACCEPT, grace_s=10, end_signal=EndSignal(signal="USR1", seconds_before=120))
    borrower = running(place, engine, guests, warned)
    assert Reservation.objects.get().borrowed
    owner = sent(place, place.quota, wants(6))
    assert drained(place, owner) == [State.QUEUED]
    owner.refresh_from_db()
    assert owner.reason_code == ReasonCode.WAITING_COMING
    assert attempt_of(borrower).end_kind == EndKind.PREEMPTION
    reconcile.observe(place.cluster.pk)
    assert engine.orders == [(handle_of(borrower), "USR1", 120)]
    engine.end_stopped(handle_of(borrower))
    reconcile.observe(place.cluster.pk)
    again = Request.objects.get(holder=attempt_of(borrower).key)
    assert again.not_before is not None
    assert again.not_before > timezone.now() + timedelta(seconds=50), "it is not started again at once"
    Request.objects.update(not_before=None)
    assert drained(place, owner, borrower) == [State.PENDING, State.QUEUED]
    borrower.refresh_from_db()
    assert (borrower.attempt_number, borrower.reason_code) == (2, ReasonCode.WAITING_IDLE)


SAVING = """\
trap 'exit 143' TERM
[ -z "$RESUME_FROM" ] || { echo "$CHECKPOINT_DIR $RESUME_FROM"; exit 0; }
echo 20 >"$CHECKPOINT_DIR/step.tmp" && mv "$CHECKPOINT_DIR/step.tmp" "$CHECKPOINT_DIR/step-20"
echo "$CHECKPOINT_DIR"
while sleep 0.1; do :; done
"""


def test_preempted_process_returns_with_its_checkpoint(
    place: Place, guests: Quota, engine: MemoryEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = LocalBench(tmp_path)
    monkeypatch.setattr(memory, "running", bench.backend)
    Node.objects.update(name=bench.config.node, cpu_milli=4000, gpus={}, gpu_list=[])
    Quota.objects.update(gpus=None, cpu_milli=4000)
    Quota.objects.filter(pk=guests.pk).update(cpu_milli=1000)
    guests.refresh_from_db()
    place.quota.refresh_from_db()

    def of(cpu_milli: int, command: str, idle: Idle | None = None) -> JobSpec:
        size = Resources(cpu_milli=cpu_milli, memory_mib=64)
        return spec(roles=(RoleSpec(name="w", command=command, resources=size),), grace_s=5, idle=idle)

    def passes(job: Job, state: State) -> bool:
        Request.objects.update(not_before=None)
        reconcile.drain(place.cluster.pk)
        reconcile.observe(place.cluster.pk)
        job.refresh_from_db()
        return job.state == state

    def read(attempt: Attempt) -> str:
        return bench.backend.read_log(Handle(attempt.handle), ReplicaRef("w", 0), "", 1 << 20).data.decode()

    try:
        borrower = sent(place, guests, of(2000, SAVING, idle=Idle.ACCEPT))
        wait_for(lambda: passes(borrower, State.RUNNING), 30)
        first = attempt_of(borrower)
        wait_for(lambda: "checkpoints" in read(first), 30)
        folder = read(first).strip()
        least = timezone.now() - timedelta(seconds=LEAST_RUNNING_S)
        Reservation.objects.update(created_at=least, started_at=least)
        owner = sent(place, place.quota, of(4000, "true"))
        wait_for(lambda: passes(owner, State.SUCCEEDED), 30)
        wait_for(lambda: passes(borrower, State.SUCCEEDED), 30)
        second = attempt_of(borrower)
        first.refresh_from_db()
        assert (first.reason_code, second.number, second.resumed_from) == (ReasonCode.PREEMPTED, 2, "step-20")
        log = read(second)
        assert log == f"{folder} {folder}/step-20\n"
    finally:
        bench.close()


def test_borrower_just_started_is_not_preempted(place: Place, guests: Quota, engine: MemoryEngine) -> None:
    borrower = running(place, engine, guests, wants(5, idle=Idle.ACCEPT))
    Reservation.objects.update(started_at=timezone.now())
    owner = sent(place, place.quota, wants(6))
    assert drained(place, owner) == [State.QUEUED]
    assert attempt_of(borrower).end_kind == ""
    place.node.refresh_from_db()
    inventory.decide(
        Node.objects.all(), NodeState.DRAINING, by=place.owner, empty_by=timezone.now() - timedelta(seconds=1)
    )
    drained(place)
    assert attempt_of(borrower).end_kind == EndKind.DRAIN


def test_borrower_without_retry_ends_after_preemption(
    place: Place, guests: Quota, engine: MemoryEngine
) -> None:
    final = wants(5, idle=Idle.ACCEPT, retry=RetryPolicy(limit=0, fancy=False))
    borrower = running(place, engine, guests, final)
    drained(place, sent(place, place.quota, wants(6)))
    reconcile.observe(place.cluster.pk)
    engine.end_stopped(handle_of(borrower))
    reconcile.observe(place.cluster.pk)
    borrower.refresh_from_db()
    assert (borrower.state, borrower.reason_code) == (State.STOPPED, ReasonCode.PREEMPTED)


def test_borrower_preempted_before_sending_queues_again_without_running(
    place: Place, guests: Quota, engine: MemoryEngine
) -> None:
    borrower = sent(place, guests, wants(5, idle=Idle.FORCE))
    admission.admit(place.cluster.pk)
    owner = sent(place, place.quota, wants(6))
    admission.admit(place.cluster.pk)
    assert attempt_of(borrower).end_kind == EndKind.PREEMPTION
    drained(place)
    borrower.refresh_from_db()
    assert (borrower.state, borrower.attempt_number) == (State.QUEUED, 2)
    assert engine.starts == {attempt_of(owner).key: 1}


def test_preemption_over_repeated_passes_takes_no_more_than_needed(
    place: Place, guests: Quota, engine: MemoryEngine
) -> None:
    small = [running(place, engine, guests, wants(2, f"s{i}", idle=Idle.FORCE)) for i in range(4)]
    sent(place, place.quota, wants(3))
    for _look in range(3):
        drained(place)
    assert Attempt.objects.filter(job__in=small).exclude(end_kind="").count() == 2


def test_preemptible_job_outbid_by_price_returns_when_price_falls(place: Place, engine: MemoryEngine) -> None:
    spot = Quota.objects.create(
        workspace=place.workspace, cluster=place.cluster, slug="spot", name="Spot", source=Source.PREEMPTIBLE
    )
    price = SpotPrice.objects.create(
        cluster=place.cluster, gpu_type="A100", market_micro=1000, price_micro=400
    )
    job = running(place, engine, spot, wants(2, bid=Bid(discount_percent=50)))
    assert reconcile.due_clusters()["drain"] == [place.cluster.pk]
    price.price_micro = 600
    price.save()
    drained(place)
    reconcile.observe(place.cluster.pk)
    engine.end_stopped(handle_of(job))
    reconcile.observe(place.cluster.pk)
    Request.objects.update(not_before=None)
    assert drained(place, job) == [State.QUEUED]
    job.refresh_from_db()
    assert (job.reason_code, job.reason_params["bid"]) == (ReasonCode.OUTBID, 1000)
    price.price_micro = 500
    price.save()
    assert drained(place, job) == [State.PENDING]


def test_draining_node_is_emptied_at_deadline(place: Place, engine: MemoryEngine) -> None:
    job = running(place, engine, place.quota, wants(2))
    nodes = Node.objects.filter(pk=place.node.pk)
    soon = timezone.now() + timedelta(hours=1)
    inventory.decide(nodes, NodeState.DRAINING, by=place.owner, why="new disks", empty_by=soon)
    later = sent(place, place.quota, wants(1))
    assert drained(place, job, later) == [State.RUNNING, State.QUEUED]
    assert attempt_of(job).end_kind == ""
    nodes.update(empty_by=timezone.now())
    assert reconcile.due_clusters()["drain"] == [place.cluster.pk]
    drained(place)
    assert attempt_of(job).end_kind == EndKind.DRAIN


def test_lost_node_stays_down_while_reservations_remain(place: Place, engine: MemoryEngine) -> None:
    running(place, engine, place.quota, wants(2))
    inventory.record(place.cluster, [])
    place.node.refresh_from_db()
    assert place.node.state == NodeState.DOWN
    reconcile.take_inventory(place.cluster.pk)
    place.node.refresh_from_db()
    assert place.node.state == NodeState.SCHEDULABLE
    Reservation.objects.update(active=False)
    inventory.record(place.cluster, [])
    assert not Node.objects.exists()


def test_admin_node_state_survives_inventory(place: Place, engine: MemoryEngine) -> None:
    inventory.decide(Node.objects.all(), NodeState.CORDONED, by=place.owner, why="new disks")
    reconcile.take_inventory(place.cluster.pk)
    place.node.refresh_from_db()
    assert (place.node.takes_jobs, place.node.state_by, place.node.why_not) == (
        False,
        place.owner,
        "new disks",
    )


def test_gpu_type_alias_matches_job_request(place: Place, engine: MemoryEngine) -> None:
    GpuType.objects.create(name="A100", aliases=["NVIDIA-A100-SXM4"])
    Node.objects.update(gpu_list=[{"index": i, "type": "NVIDIA A100 80GB"} for i in range(8)])
    GpuType.objects.update(aliases=["NVIDIA-A100-SXM4", "NVIDIA A100 80GB"])
    role = RoleSpec(name="w", command="true", resources=Resources(gpus=2, gpu_type="nvidia-a100-sxm4"))
    job = sent(place, place.quota, spec(roles=(role,)))
    assert (job.gpu_type, drained(place, job)) == ("A100", [State.PENDING])
    assert Reservation.objects.get().amounts["gpus"] == {"A100": 2}
    assert engine.submissions[attempt_of(job).key].spec.roles[0].resources.gpu_type == "NVIDIA A100 80GB"


def test_public_quota_refuses_oversized_job_and_queues_further_jobs(
    place: Place, engine: MemoryEngine
) -> None:
    Quota.objects.update(source=Source.PUBLIC)
    text = '{"jobName": "j", "image": "i", "taskRoles": [{"name": "w", "taskNumber": 1, "cpuNumber": 1,'
    text += ' "memoryMB": 512, "gpuNumber": %d, "command": "true"}]}'
    with pytest.raises(Refused) as refused:
        submission.submit(place.owner, Document(text % 3))
    assert [problem.code for problem in refused.value.problems] == ["over_public_ceiling"]
    jobs = [submission.submit(place.owner, Document(text % 2)).job for _twice in range(2)]
    assert drained(place, *jobs) == [State.PENDING, State.QUEUED]
    jobs[1].refresh_from_db()
    assert jobs[1].reason_code == ReasonCode.WAITING_PERSON


def test_quota_not_accepting_jobs_is_not_offered(place: Place) -> None:
    Quota.objects.update(accepts_jobs=False)
    assert not submission.quotas_open_to(place.owner).exists()


def test_engine_admission_limits_pending_jobs(place: Place, engine: MemoryEngine) -> None:
    place.cluster.admission = Admission.ENGINE
    place.cluster.save()
    Quota.objects.update(most_pending=1)
    first, second = (sent(place, place.quota, wants(1, name)) for name in "ab")
    assert drained(place, first, second) == [State.PENDING, State.QUEUED]
    second.refresh_from_db()
    assert second.reason_code == ReasonCode.ENGINE_FULL
    engine.run(handle_of(first))
    reconcile.observe(place.cluster.pk)
    assert drained(place, second) == [State.PENDING]


def test_held_job_waits_until_release_and_keeps_age(place: Place, engine: MemoryEngine) -> None:
    job = sent(place, place.quota, wants(1))
    submission.hold(place.owner, job)
    with pytest.raises(submission.NotWaiting):
        submission.hold(place.owner, job)
    assert drained(place, job) == [State.QUEUED]
    job.refresh_from_db()
    assert job.reason_code == ReasonCode.HELD
    submission.release(place.owner, job)
    assert drained(place, job) == [State.PENDING]
    with pytest.raises(submission.NotWaiting):
        submission.release(place.owner, job)
    kinds = Event.objects.filter(job=job, actor=place.owner).values_list("kind", flat=True)
    assert {"held", "released"} <= set(kinds)


def test_job_submitted_held_or_for_later_stays_queued(place: Place, engine: MemoryEngine) -> None:
    held = sent(place, place.quota, wants(1, hold=True))
    later = sent(place, place.quota, wants(1, not_before="2999-01-01T00:00:00Z"))
    assert drained(place, held, later) == [State.QUEUED, State.QUEUED]
    codes = [Job.objects.get(pk=job.pk).reason_code for job in (held, later)]
    assert codes == [ReasonCode.HELD, ReasonCode.NOT_YET]


def test_pending_reason_during_retry_pause_names_its_cause(place: Place, engine: MemoryEngine) -> None:
    engine.full = True
    job = sent(place, place.quota, wants(1))
    drained(place)
    drained(place)
    job.refresh_from_db()
    pending_reasons.load_reasons([job])
    assert pending_reasons.reason_of(job).code == ReasonCode.WAITING_CAPACITY
    engine.full = False
    Request.objects.update(not_before=None)
    assert drained(place, job) == [State.PENDING]
    engine.fail(handle_of(job), ReasonCode.NODE_LOST)
    reconcile.observe(place.cluster.pk)
    drained(place)
    job.refresh_from_db()
    pending_reasons.load_reasons([job])
    assert pending_reasons.reason_of(job).code == ReasonCode.RETRYING


def test_admission_reuses_released_resources_of_ended_replicas(place: Place, engine: MemoryEngine) -> None:
    role = RoleSpec(name="w", replicas=3, command="true", resources=Resources(gpus=2, gpu_type="A100"))
    job = running(place, engine, place.quota, spec(roles=(role,)))
    later = sent(place, place.quota, wants(4))
    assert drained(place, later) == [State.QUEUED]
    seen = engine.jobs[handle_of(job)]
    first, *rest = seen.replicas
    ended = replace(first, state=ReplicaState.SUCCEEDED, exit_code=0)
    engine.jobs[handle_of(job)] = replace(seen, replicas=(ended, *rest), version="8")
    reconcile.observe(place.cluster.pk)
    assert Reservation.objects.get(active=True).gpus == 6, "this engine keeps it to the end"
    engine.can_shrink = True
    engine.jobs[handle_of(job)] = replace(seen, replicas=(ended, *rest), version="9")
    reconcile.observe(place.cluster.pk)
    assert Reservation.objects.get(active=True).gpus == 4
    Quota.objects.update(gpus=8)
    assert drained(place, later) == [State.PENDING]


def test_hold_by_other_member_is_refused(place: Place) -> None:
    job = sent(place, place.quota, wants(1))
    member = User.objects.create_user("bob")
    Membership.objects.create(workspace=place.workspace, user=member)
    with pytest.raises(submission.Forbidden):
        submission.hold(member, job)


def test_queue_position_follows_last_pass_without_job_update(place: Place, engine: MemoryEngine) -> None:
    first = running(place, engine, place.quota, wants(4, "first"))
    jobs = [sent(place, place.quota, wants(2, name)) for name in "abc"]
    Quota.objects.update(gpus=None)
    blocker = sent(place, place.quota, wants(8, "all", priority=9))
    drained(place)
    shown = list(
        Job.objects.filter(pk__in=[blocker.pk, *(job.pk for job in jobs)]).order_by("-priority", "pk")
    )
    pending_reasons.load_reasons(shown)
    assert [pending_reasons.reason_of(job).params["position"] for job in shown] == [1, 2, 3, 4]
    assert pending_reasons.reason_of(shown[2]).params["ahead"] == 2
    versions = list(
        Job.objects.filter(pk__in=[job.pk for job in jobs]).values_list("reason_params", flat=True)
    )
    submission.stop(place.owner, Job.objects.get(pk=blocker.pk))
    engine.succeed(handle_of(first))
    reconcile.observe(place.cluster.pk)
    assert drained(place, *jobs) == [State.PENDING] * 3
    assert not any("position" in params for params in versions)


def test_job_for_missing_node_waits_with_reason(place: Place, engine: MemoryEngine) -> None:
    """It is not handed over to be refused: the node may come."""
    role = RoleSpec(name="w", command="true", nodes=NodeChoice(only=("far-away",)))
    job = sent(place, place.quota, spec("job", roles=(role,)))
    assert drained(place, job) == [State.QUEUED]
    job.refresh_from_db()
    assert (job.reason_code, job.reason_params["missing"]) == (ReasonCode.NO_SUCH_NODE, "far-away")
    node = Node.objects.get()
    Node.objects.create(
        cluster=place.cluster, name="far-away", cpu_milli=node.cpu_milli, memory_mib=node.memory_mib
    )
    assert drained(place, job) == [State.PENDING]
    assert [name for name, _amounts in Reservation.objects.get().placement] == ["far-away"]
