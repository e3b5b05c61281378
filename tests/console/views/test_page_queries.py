"""Pages and API answers cost the same however many jobs have ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db.models import Model
from django.test import Client

from jobs.models import Attempt, Job
from jobs.states import State
from quotas.models import AuditEntry, Request, Reservation
from tests import query_plans
from tests.factories import attempt_of, make_job
from tests.jobs.web.conftest import People, browser

pytestmark = pytest.mark.sqlite
"""PostgreSQL reads tables of a few hundred rows whole, whatever their indexes."""

ADDED = 400

FULL = 120
"""So many ended jobs fill a page of every list before more are added."""

PAGES = (
    "/",
    "/jobs/",
    "/jobs/?q=owner:me",
    "/jobs/new",
    "/quotas/",
    "/audit/?refused=on",
    "/admin/",
    "/metrics",
    "/search?q=absent",
    "/api/console/v1/jobs",
)


def make_ended(people: People, name: str) -> list[Model]:
    """An ended job with its request, reservation and audit entry, all of them old."""
    job = make_job(State.FAILED, owner=people.admin, quota=people.quota, name=name)
    Attempt.objects.filter(job=job).update(forgotten_at=job.ended_at)
    place = {"cluster": people.quota.cluster, "quota": people.quota}
    request = Request.objects.create(
        holder=attempt_of(job).key, owner=people.admin, state=Request.State.CLOSED, **place
    )
    Reservation.objects.create(request=request, active=False, released_at=job.ended_at, **place)
    rows = [job, request, AuditEntry.objects.create(action="read")]
    query_plans.make_older(rows, timedelta(days=40))
    return rows


def show(client: Client, address: str) -> Callable[[], None]:
    def call() -> None:
        assert client.get(address).status_code == 200

    return call


@pytest.fixture
def grow(people: People) -> Callable[[], int]:
    """Fill the lists, and return what adds ended jobs."""
    query_plans.multiply(make_ended(people, "first"), FULL)
    more = make_ended(people, "second")
    for state in (State.RUNNING, State.QUEUED):
        make_job(state, owner=people.admin, quota=people.quota)
    return partial(query_plans.multiply, more, ADDED)


def test_pages_cost_the_same_however_many_jobs_ended(people: People, grow: Callable[[], int]) -> None:
    client = browser(people.admin)
    calls = {address: show(client, address) for address in PAGES}
    reports = query_plans.find_growing(calls, grow)
    assert not reports, "\n".join(reports)
    assert Job.objects.count() > FULL + ADDED


def test_admin_lists_of_jobs_and_attempts_neither_sort_nor_collect_all(
    people: People, grow: Callable[[], int]
) -> None:
    client = browser(people.admin)
    calls = {name: show(client, f"/admin/jobs/{name}/") for name in ("job", "attempt")}
    # The list counts as far as 10,000 rows, by an index: a few instructions for each.
    reports = query_plans.find_growing(calls, grow, least=5)
    assert not reports, "\n".join(reports)
