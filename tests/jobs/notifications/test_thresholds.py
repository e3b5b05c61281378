"""Long waits and quotas that are nearly used: told once, and again only when it is news."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import Attempt, Channel, Job, NotificationEvent, NotificationRule
from jobs.notifications import Kind, thresholds
from jobs.states import State
from quotas import ledger
from quotas.amounts import Amounts
from quotas.models import Quota, Request, Reservation
from tests.factories import attempt_of, make_job, make_quota
from tests.jobs.web.conftest import People

pytestmark = pytest.mark.django_db


def waiting(people: People, minutes: int, state: State = State.QUEUED) -> Job:
    job = make_job(state, owner=people.owner, quota=people.quota)
    since = timezone.now() - timedelta(minutes=minutes)
    Attempt.objects.filter(job=job).update(created_at=since)
    return job


def told(kind: Kind = Kind.WAITS) -> list[int]:
    name = "minutes" if kind is Kind.WAITS else "percent"
    return [row.params[name] for row in NotificationEvent.objects.filter(kind=kind).order_by("id")]


def asks(people: People, **columns: int) -> None:
    row = Channel.objects.create(person=people.owner, kind="webhook", verified_at=timezone.now())
    NotificationRule.objects.create(channel=row, events=[Kind.WAITS, Kind.QUOTA], **columns)


@pytest.mark.parametrize(("minutes", "heard"), [(59, []), (61, [60])])
def test_long_wait_default_threshold_is_one_hour(people: People, minutes: int, heard: list[int]) -> None:
    waiting(people, minutes)
    thresholds.report_waits()
    assert told() == heard


def test_long_wait_is_reported_once_per_requested_length(people: People) -> None:
    asks(people, wait_minutes=15)
    asks(people, wait_minutes=240)
    job = waiting(people, 70)
    assert (thresholds.report_waits(), thresholds.report_waits()) == (2, 0)
    assert told() == [15, 60]
    Attempt.objects.filter(job=job).update(created_at=timezone.now() - timedelta(minutes=300))
    assert (thresholds.report_waits(), told()) == (1, [15, 60, 240])


def test_long_wait_of_new_attempt_is_reported_again(people: People) -> None:
    job = waiting(people, 70)
    thresholds.report_waits()
    Job.objects.filter(pk=job.pk).update(attempt_number=2)
    Attempt.objects.create(job=job, number=2, key="x-2", created_at=timezone.now() - timedelta(minutes=70))
    assert (thresholds.report_waits(), told()) == (1, [60, 60])


@pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED, State.FAILED])
def test_long_wait_ignores_running_and_ended_jobs(people: People, state: State) -> None:
    waiting(people, 300, state)
    assert thresholds.report_waits() == 0


def test_long_wait_counts_pending_jobs(people: People) -> None:
    waiting(people, 70, State.PENDING)
    assert thresholds.report_waits() == 1


def hold(people: People, quota: Quota, gpus: int) -> None:
    """Let so many of the quota's GPUs be held, and nothing else."""
    Reservation.objects.all().delete()
    Request.objects.all().delete()
    if not gpus:
        return
    job = make_job(State.RUNNING, owner=people.owner, quota=quota)
    amounts = Amounts(gpus={"": gpus})
    request = ledger.ask(
        attempt_of(job).key,
        quota=quota,
        owner=people.owner,
        parts=[ledger.Part(1, amounts)],
        priority=1,
        declared_s=None,
    )
    ledger.reserve(request, [("node", amounts)])


def test_quota_usage_is_reported_again_only_after_clear_drop(people: People) -> None:
    quota = make_quota(people.quota.workspace, people.quota.cluster, "gpus", gpus=100)
    for held, heard in [
        (89, []),
        (92, [92]),
        (95, [92]),
        (92, [92]),
        (86, [92]),
        (91, [92]),
        (70, [92]),
        (90, [92, 90]),
        (0, [92, 90]),
        (100, [92, 90, 100]),
    ]:
        hold(people, quota, held)
        thresholds.report_quotas()
        assert told(Kind.QUOTA) == heard, held
    assert NotificationEvent.objects.last().params["resource"] == "gpu"  # type: ignore[union-attr]


def test_quota_usage_is_reported_at_each_requested_share(people: People) -> None:
    asks(people, quota_percent=50)
    quota = make_quota(people.quota.workspace, people.quota.cluster, "gpus", gpus=100)
    for held in (49, 51, 60, 93):
        hold(people, quota, held)
        thresholds.report_quotas()
    assert told(Kind.QUOTA) == [51, 93]


def test_quota_without_limits_reports_no_usage(people: People) -> None:
    hold(people, people.quota, 500)
    thresholds.report_quotas()
    assert told(Kind.QUOTA) == []
