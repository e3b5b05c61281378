"""The page of the queue, for console admins and workspace admins, and its actions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.models import Attempt, Event, Job
from jobs.scheduling import admission
from jobs.states import State
from quotas.models import AdminAction, AuditEntry, Cluster, JobPolicy, Quota, Request, Role, User
from tests.factories import make_membership, make_quota, make_user, make_workspace
from tests.jobs.conftest import Place, queued, spec

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(place: Place) -> list[Job]:
    """Three jobs that wait for their quota, which allows none."""
    Quota.objects.update(most_jobs=1)
    first = queued(place, spec("runs"))
    jobs = [queued(place, spec(name)) for name in ("a", "b", "c")]
    admission.admit(place.cluster.pk)
    first.refresh_from_db()
    assert first.state == State.SUBMITTING
    return jobs


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def manager(place: Place) -> User:
    user = make_user("manager")
    make_membership(user, place.workspace, Role.ADMIN)
    return user


@pytest.fixture
def root(db: None) -> User:
    return make_user("root", admin=True)


def names(client: Client, **query: str) -> list[str]:
    """The jobs of the page in their order."""
    return [row.job.name for row in client.get("/queue/", query).context["rows"]]


def act(client: Client, name: str, *jobs: Job, **values: Any) -> str:
    data = {"act": name, "id": [job.public_id for job in jobs], "confirmed": "yes", **values}
    return client.post("/queue/change", data, follow=True).content.decode()


def test_queue_shows_positions_and_reasons(place: Place, waiting: list[Job], manager: User) -> None:
    shown = client_of(manager).get("/queue/")
    rows = shown.context["rows"]
    assert [(row.job.name, row.place.on_cluster, row.place.in_quota) for row in rows] == [
        ("a", 1, 1),
        ("b", 2, 2),
        ("c", 3, 3),
    ]
    assert "Waiting for quota Default" in shown.content.decode()
    assert names(client_of(manager), show="running") == ["runs"]
    assert client_of(place.owner).get("/queue/").status_code == 403
    assert client_of(manager).get("/queue/", {"cluster": "elsewhere"}).status_code == 404


def test_queue_has_only_own_workspaces_and_bounded_queries(
    place: Place, waiting: list[Job], manager: User, root: User
) -> None:
    other = make_quota(make_workspace("speech", members={place.owner: Role.DEVELOPER}), place.cluster, "x")
    stranger = queued(replace(place, quota=other), spec("theirs"))
    Quota.objects.update(most_jobs=0)
    admission.admit(place.cluster.pk)
    assert stranger.name not in names(client_of(manager))
    assert stranger.name in names(client_of(root))
    client = client_of(root)
    client.get("/queue/")
    with CaptureQueriesContext(connection) as few:
        client.get("/queue/", headers={"HX-Request": "true", "HX-Target": "queue-list"})
    for number in range(8):
        queued(place, spec(f"more-{number}"))
    admission.admit(place.cluster.pk)
    with CaptureQueriesContext(connection) as many:
        client.get("/queue/", headers={"HX-Request": "true", "HX-Target": "queue-list"})
    assert len(many) == len(few) <= 20


def test_queue_pages_by_the_last_holder(
    place: Place, waiting: list[Job], manager: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.web.queue.PAGE", 2)
    first = client_of(manager).get("/queue/")
    assert [row.job.name for row in first.context["rows"]] == ["a", "b"]
    following = client_of(manager).get(first.context["next_url"])
    assert [row.job.name for row in following.context["rows"]] == ["c"]
    assert following.context["next_url"] == ""


def test_action_is_confirmed_before_it_is_done(waiting: list[Job], root: User) -> None:
    asked = client_of(root).post("/queue/change", {"act": "next", "id": [waiting[2].public_id]})
    assert "Running jobs are not stopped" in asked.content.decode()
    assert not Request.objects.exclude(cluster_rank=0).exists()
    missing = client_of(root).post(
        "/queue/change", {"act": "next", "id": [waiting[2].public_id], "confirmed": "y"}
    )
    assert missing.status_code == 422


def test_run_next_and_one_up_change_the_order(place: Place, waiting: list[Job], root: User) -> None:
    client = client_of(root)
    assert "Run next: c." in act(client, "next", waiting[2], why="deadline")
    admission.admit(place.cluster.pk)
    assert names(client) == ["c", "a", "b"]
    act(client, "up", waiting[1], why="x")
    act(client, "up", waiting[1], why="x")  # before any pass: the order that was set counts
    admission.admit(place.cluster.pk)
    assert names(client) == ["b", "c", "a"]
    act(client, "down", waiting[1], why="x")
    admission.admit(place.cluster.pk)
    assert names(client) == ["c", "b", "a"]
    act(client, "usual", *waiting, why="x")
    admission.admit(place.cluster.pk)
    assert names(client) == ["a", "b", "c"]
    assert Event.objects.filter(kind=Event.Kind.REORDERED, actor=root).count() >= 5
    assert AdminAction.objects.filter(params__act="next").count() == 1
    assert AuditEntry.objects.filter(object_repr=waiting[2].public_id, actor_name="root").exists()


def test_workspace_admin_orders_only_within_the_workspace(
    place: Place, waiting: list[Job], manager: User
) -> None:
    act(client_of(manager), "next", waiting[2], why="deadline")
    request = Request.objects.get(holder=Attempt.objects.get(job=waiting[2]).key)
    assert (request.cluster_rank, request.workspace_rank) == (0, 1)
    admission.admit(place.cluster.pk)
    assert names(client_of(manager)) == ["c", "a", "b"]


def test_held_job_shows_its_owner_the_reason(place: Place, waiting: list[Job], manager: User) -> None:
    act(client_of(manager), "hold", waiting[0], why="the node is benchmarked")
    page = client_of(place.owner).get(f"/jobs/{waiting[0].public_id}/").content.decode()
    assert "Held by manager: the node is benchmarked" in page
    act(client_of(manager), "release", waiting[0])
    assert not Request.objects.filter(held=True).exists()


def test_workspace_admin_sets_priority_up_to_their_limit(
    place: Place, waiting: list[Job], manager: User
) -> None:
    JobPolicy.objects.create(quota=place.quota, highest_priority=6)
    assert "above your limit of 6" in act(client_of(manager), "prioritise", waiting[0], priority=7, why="x")
    act(client_of(manager), "prioritise", waiting[0], priority=6, why="x")
    waiting[0].refresh_from_db()
    assert waiting[0].priority == 6


def test_job_moves_to_another_cluster(place: Place, waiting: list[Job], manager: User) -> None:
    cluster = Cluster.objects.create(slug="second", name="Second", backend="memory")
    there = make_quota(place.workspace, cluster, "there")
    act(client_of(manager), "move", waiting[0], quota=there.pk, why="room")
    waiting[0].refresh_from_db()
    request = Request.objects.get(holder=Attempt.objects.get(job=waiting[0]).key)
    assert (waiting[0].cluster, waiting[0].quota, request.cluster) == (cluster, there, cluster)
    elsewhere = make_quota(make_workspace("speech"), cluster, "x")
    assert "Select a valid choice" in act(client_of(manager), "move", waiting[1], quota=elsewhere.pk, why="x")


def test_requeue_sends_a_waiting_job_to_the_end_and_stops_a_started_one(
    place: Place, waiting: list[Job], root: User
) -> None:
    act(client_of(root), "requeue", waiting[0], why="x")
    admission.admit(place.cluster.pk)
    assert names(client_of(root)) == ["b", "c", "a"]
    running = Job.objects.get(name="runs")
    act(client_of(root), "restart", running, why="x")
    assert Attempt.objects.get(job=running).end_kind == "requeue"


def test_stranger_and_member_cannot_act(place: Place, waiting: list[Job]) -> None:
    data = {"act": "next", "id": [waiting[0].public_id], "confirmed": "yes", "why": "x"}
    assert client_of(place.owner).post("/queue/change", data).status_code == 403
    stranger = make_user("stranger")
    make_workspace("theirs", members={stranger: Role.ADMIN})
    act(client_of(stranger), "next", waiting[0], why="x")
    assert not Request.objects.exclude(workspace_rank=0).exists()
