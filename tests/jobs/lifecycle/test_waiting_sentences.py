"""The sentence of a job that waits names what really keeps it, as its page tells it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from jobs import submission
from jobs.dialects.base import Refused
from jobs.lifecycle import pending_reasons
from jobs.messages import problem_message, reason_message
from jobs.models import Event, Job
from jobs.scheduling import reconcile
from jobs.spec import Resources, RoleSpec
from jobs.states import ReasonCode
from jobs.submission import JobTarget as Target
from quotas.admission import snapshot
from quotas.audit.action_record import Actor, write_down
from quotas.clusters import inventory
from quotas.models import AdminAction, Maintenance, Membership, Node, NodeState, Quota, Role, User
from tests.jobs.conftest import Place, queued, spec
from tests.jobs.engine import MemoryEngine

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(place: Place, engine: MemoryEngine) -> Place:
    """Eight GPUs; the quota allows four, and three of one person."""
    Node.objects.update(gpus={"A100": 8}, gpu_list=[{"index": i, "type": "A100"} for i in range(8)])
    Quota.objects.update(gpus=4, person_gpus=3)
    place.quota.refresh_from_db()
    return place


def sent(place: Place, gpus: int) -> Job:
    role = RoleSpec(name="w", command="true", resources=Resources(gpus=gpus))
    job = queued(place, spec(roles=(role,)))
    reconcile.drain(place.cluster.pk)
    return job


def sentence(job: Job) -> str:
    job = Job.objects.select_related("cluster").get(pk=job.pk)
    pending_reasons.load_reasons([job])
    reason = pending_reasons.reason_of(job)
    return reason_message(reason.code, reason.params)


def test_waiting_sentence_names_per_user_limit(place: Place) -> None:
    told = sentence(sent(place, 4))
    assert "quota Default allows at most 3 GPUs per user" in told
    assert "5 GPUs requested, but quota Default allows at most 3 GPUs per user" in sentence(sent(place, 5))


def test_waiting_sentence_names_drained_nodes_with_reason(place: Place) -> None:
    inventory.decide(Node.objects.all(), NodeState.DRAINING, by=place.owner, why="new disks")
    told = sentence(sent(place, 1))
    assert told.startswith("Waiting: all suitable nodes of Memory are being drained: new disks")


def test_waiting_sentence_of_impossible_job_ignores_maintenance(place: Place) -> None:
    now = timezone.now()
    Maintenance.objects.create(
        from_at=now + timedelta(hours=1), until_at=now + timedelta(hours=2), keeps_free=True, lead_hours=24
    )
    never, later = sent(place, 4), sent(place, 1)
    assert len(snapshot.preview_window(Maintenance.objects.get()).blocked) == 2
    assert "allows at most 3 GPUs per user" in sentence(never)
    assert "is under maintenance from" in sentence(later)


def test_waiting_sentence_gives_position_in_quota_queue(place: Place) -> None:
    sent(place, 2)
    second, third = sent(place, 2), sent(place, 1)
    assert "Position 1 in the quota's queue." in sentence(second)
    told = sentence(third)
    assert told.startswith("Waiting for its turn in quota Default: the owner's remaining share is reserved")
    assert "Position 2 in the quota's queue (1 job ahead)." in told


def test_waiting_sentence_of_held_job_names_holder_and_reason(place: Place) -> None:
    Quota.objects.update(gpus=0)
    job = sent(place, 1)
    admin = User.objects.create_superuser("root")
    submission.hold(admin, job, why="the data are moving")
    reconcile.drain(place.cluster.pk)
    assert sentence(job).startswith("Held by root: the data are moving.")
    assert Event.objects.get(kind="held").params["why"] == "the data are moving"
    submission.release(admin, job)
    reconcile.drain(place.cluster.pk)
    job.refresh_from_db()
    assert job.reason_code != ReasonCode.HELD


def test_viewer_submission_is_refused_for_role(place: Place) -> None:
    viewer = User.objects.create_user("viewer")
    Membership.objects.create(workspace=place.workspace, user=viewer, role=Role.VIEWER)
    with pytest.raises(Refused) as refused:
        submission.find_quota(viewer, Target(workspace="vision"), spec())
    (problem,) = refused.value.problems
    assert problem.code == "may_not_submit"
    assert "role in workspace “vision”" in problem_message(problem)


@pytest.mark.parametrize(
    ("kind", "params", "told"),
    [
        (AdminAction.Kind.JOBS, {"act": "hold"}, "held jobs: x"),
        (AdminAction.Kind.JOBS, {"act": "stop"}, "stopped jobs: x"),
        (AdminAction.Kind.NODES, {"state": "draining"}, "drained nodes: x"),
        (AdminAction.Kind.FREEZE, {}, "paused scheduling: x"),
    ],
)
def test_admin_action_text_names_the_action(
    kind: AdminAction.Kind, params: dict[str, Any], told: str
) -> None:
    write_down(Actor(User.objects.create_superuser("root")), kind, "x", **params)
    assert str(AdminAction.objects.get()) == told
