"""What /metrics tells about jobs."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from jobs.live.limits import hold_stream
from jobs.states import State
from quotas.models import Request, User
from tests.factories import make_cluster, make_job, make_quota, make_user

pytestmark = pytest.mark.django_db


def told(client: Client, name: str) -> dict[tuple[str, ...], float]:
    client.force_login(User.objects.filter(is_superuser=True).first() or make_user(admin=True))
    text = client.get("/metrics").content.decode()
    (family,) = (each for each in text_string_to_metric_families(text) if each.name == name)
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


def test_jobs_metric_counts_all_states_including_empty_ones(client: Client) -> None:
    make_job(State.RUNNING)
    make_job(State.RUNNING)
    make_job(State.LOST, deleted_at="2026-01-01T00:00:00Z")
    make_job(State.FAILED, ended_at=timezone.now() - timedelta(minutes=59))
    make_job(State.FAILED, ended_at=timezone.now() - timedelta(minutes=61))
    make_job(State.FAILED, ended_at=timezone.now(), deleted_at="2026-01-01T00:00:00Z")
    counted, ended = told(client, "console_jobs"), told(client, "console_recently_ended_jobs")
    assert {state for (state,) in (*counted, *ended)} == set(State)
    assert {state: number for (state,), number in counted.items() if number} == {"RUNNING": 2}
    assert ended == {("SUCCEEDED",): 0, ("FAILED",): 1, ("STOPPED",): 0}


def test_waiting_metric_counts_requests_per_cluster(client: Client) -> None:
    quota = make_quota(cluster=make_cluster("first"))
    make_cluster("second")
    owner = make_user()
    for holder, state in (("a", "waiting"), ("b", "waiting"), ("c", "admitted"), ("d", "closed")):
        Request.objects.create(holder=holder, cluster=quota.cluster, quota=quota, owner=owner, state=state)
    assert told(client, "console_waiting") == {("first",): 2, ("second",): 0}


def test_live_attempts_metric_counts_observed_attempts(client: Client) -> None:
    make_job(State.QUEUED)
    make_job(State.RUNNING)
    make_job(State.SUCCEEDED)
    assert told(client, "console_live_attempts") == {(): 1}


def test_open_streams_metric_counts_streams_until_they_close(client: Client) -> None:
    first = hold_stream(1)
    before = told(client, "console_open_streams")[()]
    second = hold_stream(1)
    assert told(client, "console_open_streams") == {(): before + 1}
    second.close()
    assert told(client, "console_open_streams") == {(): before}
    first.close()
