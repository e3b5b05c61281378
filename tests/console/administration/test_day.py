"""The day of each cluster, in one page and a fixed number of queries."""

from __future__ import annotations

import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from console.administration.day import days
from jobs.models import Job
from jobs.states import State
from quotas import ledger
from quotas.amounts import Amounts, Part
from quotas.ledger.usage import roll_up
from quotas.models import Cluster, Node, NodeState, Quota, Reservation, UsageHour
from tests.console.administration.conftest import OTHERS, client_of
from tests.factories import attempt_of, make_cluster, make_job, make_quota, make_user

pytestmark = pytest.mark.django_db


def holds(quota: Quota, gpus: int, owner: str = "", *, borrowed: bool = False) -> None:
    job = make_job(State.RUNNING, quota=quota, owner=make_user(owner))
    each = Amounts(1000, 1024, {"A100": gpus})
    request = ledger.ask(
        attempt_of(job).key,
        quota=quota,
        owner=job.owner,
        parts=[Part(1, each)],
        priority=1,
        declared_s=None,
    )
    ledger.reserve(request, [("n1", each)], borrowed=borrowed)


def text_of(client: Client) -> str:
    return re.sub(r"\s+", " ", client.get("/admin/").content.decode())


@pytest.mark.parametrize("who", OTHERS)
def test_overview_is_hidden_from_non_admins(who: str, quota: Quota) -> None:
    client = client_of(who, quota)
    answer = client.get("/admin/")
    if who == "staff":
        assert "North" not in answer.content.decode()
    else:
        assert answer.status_code == 302
    assert client.get("/admin/health/").status_code in {302, 403}


def test_overview_shows_used_free_and_borrowed_gpus(quota: Quota) -> None:
    Node.objects.create(cluster=quota.cluster, name="n1", gpus={"A100": 8})
    holds(quota, 4, "alice")
    holds(quota, 1, "bob", borrowed=True)
    (day,) = days(timezone.now())
    assert (day.gpus, day.used, day.free, day.borrowed) == (8, 5, 3, 1)
    assert day.running == 2
    assert day.people == [("alice", 4, 1), ("bob", 1, 1)]


def test_overview_shows_oldest_waiting_job_and_its_reason(admin: Client, quota: Quota) -> None:
    first = make_job(State.QUEUED, quota=quota, name="first")
    make_job(State.QUEUED, quota=quota, name="second")
    (day,) = days(timezone.now())
    assert (day.waiting, day.oldest) == (2, first)
    assert "Waiting for its turn." in text_of(admin)


def test_overview_counts_failures_of_last_day_and_lost_jobs(admin: Client, quota: Quota) -> None:
    make_job(State.FAILED, quota=quota)
    old = make_job(State.FAILED, quota=quota)
    Job.objects.filter(pk=old.pk).update(ended_at=timezone.now() - timedelta(hours=25))
    make_job(State.LOST, quota=quota)
    (day,) = days(timezone.now())
    assert (day.failed, day.lost) == (1, 1)
    text = text_of(admin)
    assert "1 job lost." in text
    assert "/admin/incidents/?open=settle" in text


def test_overview_lists_unschedulable_nodes(admin: Client, quota: Quota) -> None:
    Node.objects.create(cluster=quota.cluster, name="n1")
    Node.objects.create(cluster=quota.cluster, name="n2", state=NodeState.DRAINING, state_why="new disks")
    Node.objects.create(cluster=quota.cluster, name="n3", schedulable=False, why="kubelet is dead")
    text = text_of(admin)
    assert "2 unschedulable nodes:" in text
    assert "n2 (Draining, new disks)" in text
    assert "kubelet is dead" in text


def test_overview_counts_reserved_disk_space_as_used(
    admin: Client, quota: Quota, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100 GiB root keeps 60 for itself; the console has used 30 of the other 40."""
    usage = SimpleNamespace(total=100 * 2**30, used=30 * 2**30, free=10 * 2**30)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    assert "Disk: 75% used, 10.0 GB free." in text_of(admin)


def test_overview_shows_cluster_errors(admin: Client, quota: Quota) -> None:
    assert "Never responded." in text_of(admin)
    Cluster.objects.update(answered_at=timezone.now() - timedelta(hours=2))
    assert "No response for 2 hours." in text_of(admin)
    Cluster.objects.update(answered_at=timezone.now())
    assert "No response" not in text_of(admin)
    Cluster.objects.update(trouble="connection refused", frozen_at=timezone.now(), frozen_why="smoke")
    text = text_of(admin)
    assert "Error: connection refused" in text
    assert "Scheduling paused: smoke" in text


def test_overview_lists_quotas_near_their_limit_with_child_usage(quota: Quota) -> None:
    leaf = make_quota(quota.workspace, quota.cluster, "leaf", parent=quota, most_jobs=10)
    holds(leaf, 7)
    (day,) = days(timezone.now())
    assert day.near == []
    holds(leaf, 1)
    (day,) = days(timezone.now())
    assert [(near.quota, near.percent) for near in day.near] == [(quota, 100)]


def test_overview_shows_recorded_usage_of_last_24_hours(quota: Quota) -> None:
    Node.objects.create(cluster=quota.cluster, name="n1", gpus={"A100": 8})
    holds(quota, 4)
    now = timezone.now()
    Reservation.objects.update(created_at=now - timedelta(hours=30))
    assert roll_up(now) > 0
    (day,) = days(now)
    assert len(day.hours) == 24
    assert {(hour.gpus, hour.used_part) for hour in day.hours} == {(4.0, 50)}
    UsageHour.objects.all().delete()
    (day,) = days(now)
    assert {hour.gpus for hour in day.hours} == {0.0}


def test_overview_without_clusters_suggests_adding_one(admin: Client) -> None:
    assert "No clusters yet. Add one to run jobs." in text_of(admin)


def test_overview_query_count_stays_fixed(quota: Quota, django_assert_max_num_queries: Any) -> None:
    for number in range(4):
        cluster = make_cluster(f"c{number}")
        Node.objects.create(cluster=cluster, name="n1", gpus={"A100": 8})
        other = make_quota(quota.workspace, cluster, gpus=8)
        for state in State:
            make_job(state, quota=other)
        holds(other, 8)
    with django_assert_max_num_queries(12):
        assert len(days(timezone.now())) == 5


def test_health_page_shows_status_of_each_part(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.monitoring.health.parts", lambda: {"web": "ok", "broker": "no answer"})
    text = admin.get("/admin/health/").content.decode()
    assert "web: OK" in text
    assert "broker: no answer" in text
