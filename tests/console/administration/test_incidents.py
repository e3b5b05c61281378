"""The incident buttons: who may, what is said before, what follows."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import Event, Job
from jobs.states import State
from quotas.models import AdminAction, Banner, Cluster, Node, Quota, ReadOnly, User
from tests.console.administration.conftest import OTHERS, client_of
from tests.factories import make_job, make_user

pytestmark = pytest.mark.django_db

PAGE = "/admin/incidents/"


def press(admin: Client, name: str, *, confirmed: bool = True, **values: object) -> str:
    """What the page after the button says."""
    data = {**values, "confirmed": "yes"} if confirmed else values
    return admin.post(f"{PAGE}{name}", data, follow=True).content.decode()


@pytest.mark.parametrize("who", OTHERS)
def test_incident_page_and_buttons_refuse_non_admins(who: str, quota: Quota) -> None:
    client = client_of(who, quota)
    assert client.get(PAGE).status_code in {302, 403}
    data = {"cluster": quota.cluster_id, "why": "x", "confirmed": "yes"}
    assert client.post(f"{PAGE}freeze", data).status_code in {302, 403}
    assert not AdminAction.objects.exists()
    assert Cluster.objects.get(pk=quota.cluster_id).frozen_at is None


def test_incident_page_shows_current_state(admin: Client, quota: Quota, root: User) -> None:
    text = admin.get(PAGE).content.decode()
    assert "Read-only mode is off." in text
    assert "Scheduling is active on all clusters." in text
    assert "No lost jobs." in text
    make_job(State.LOST, quota=quota)
    press(admin, "freeze", cluster=quota.cluster_id, why="the switch burns")
    press(admin, "read_only", why="the database moves")
    text = admin.get(PAGE).content.decode()
    assert "Scheduling on North paused since" in text
    assert "by root: the database moves" in text
    assert "was lost on North" in text
    assert text.count("<time ") >= 2


def test_incident_button_shows_consequences_before_acting(admin: Client, quota: Quota) -> None:
    make_job(State.RUNNING, quota=quota)
    make_job(State.QUEUED, quota=quota)
    text = press(admin, "freeze", confirmed=False, cluster=quota.cluster_id, why="the switch burns")
    assert "No new jobs start on North" in text
    assert "Running or starting: 1. Waiting: 1." in text
    assert not AdminAction.objects.exists()
    assert Cluster.objects.get(pk=quota.cluster_id).frozen_at is None


def test_cluster_scheduling_is_paused_and_resumed(admin: Client, quota: Quota, root: User) -> None:
    assert "Scheduling on North paused." in press(admin, "freeze", cluster=quota.cluster_id, why="smoke")
    assert Cluster.objects.get(pk=quota.cluster_id).frozen_why == "smoke"
    assert "Scheduling on North resumed." in press(
        admin, "unfreeze", cluster=quota.cluster_id, why="no smoke"
    )
    assert Cluster.objects.get(pk=quota.cluster_id).frozen_at is None
    assert list(AdminAction.objects.values_list("kind", "by", "address", "why")) == [
        ("unfreeze", root.pk, "127.0.0.1", "no smoke"),
        ("freeze", root.pk, "127.0.0.1", "smoke"),
    ]


def test_incident_button_without_reason_is_refused_at_the_field(admin: Client, quota: Quota) -> None:
    answer = admin.post(f"{PAGE}freeze", {"cluster": quota.cluster_id, "why": " ", "confirmed": "yes"})
    assert answer.status_code == 422
    assert "This field is required" in answer.content.decode()
    assert not AdminAction.objects.exists()


def test_read_only_mode_is_switched_on_and_off(admin: Client) -> None:
    press(admin, "read_only", why="the database moves")
    assert ReadOnly.objects.exists()
    press(admin, "read_write", why="it has moved")
    assert not ReadOnly.objects.exists()


def test_end_person_action_shows_counts_before_acting(admin: Client, quota: Quota) -> None:
    owner = make_user("alice")
    job = make_job(State.RUNNING, owner=owner, quota=quota)
    values: dict[str, Any] = {"person": "alice", "why": "stolen laptop", "disable": "on"}
    asked = press(admin, "end_person", confirmed=False, **values)
    assert "Jobs stopped: 1" in asked
    assert "Service account tokens created by this user revoked: 0" in asked
    assert "Invitations withdrawn: 0" in asked
    assert "can&#x27;t sign in" in asked
    assert "All activity of alice is being stopped, including 1 job." in press(admin, "end_person", **values)
    owner.refresh_from_db()
    assert not owner.is_active
    assert Event.objects.filter(job=job, kind=Event.Kind.END_WANTED).exists()
    assert "User not found." in press(admin, "end_person", **{**values, "person": "nobody"})


def test_node_notification_without_owners_creates_no_banner(admin: Client, quota: Quota) -> None:
    node = Node.objects.create(cluster=quota.cluster, name="n1")
    text = press(admin, "tell_owners", confirmed=False, node=node.pk, why="it reboots")
    assert "No jobs on n1, so nobody will be notified." in text
    press(admin, "tell_owners", node=node.pk, why="it reboots")
    assert not Banner.objects.exists()
    assert AdminAction.objects.get().params["owners"] == 0


def test_lost_job_is_settled_only_after_confirmation(admin: Client, quota: Quota) -> None:
    job = make_job(State.LOST, quota=quota)
    values: dict[str, Any] = {"job": job.public_id, "state": "FAILED", "why": "the node was wiped"}
    press(admin, "settle", **values)
    job.refresh_from_db()
    assert job.state == State.LOST, "nobody made sure"
    press(admin, "settle", sure="on", **values)
    job.refresh_from_db()
    assert (job.state, job.reason_params["because"]) == (State.FAILED, "the node was wiped")
    assert press(admin, "settle", sure="on", **values)
    assert AdminAction.objects.count() == 1


def test_job_running_again_is_not_settled(admin: Client, quota: Quota) -> None:
    job = make_job(State.LOST, quota=quota)
    Job.objects.filter(pk=job.pk).update(state=State.RUNNING)
    press(admin, "settle", job=job.public_id, state="FAILED", why="x", sure="on")
    job.refresh_from_db()
    assert job.state == State.RUNNING
    assert not AdminAction.objects.exists()


def test_unknown_incident_action_is_not_found(admin: Client) -> None:
    assert admin.post(f"{PAGE}explode", {"why": "x"}).status_code == 404
    assert admin.get(f"{PAGE}freeze").status_code == 405
