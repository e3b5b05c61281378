"""How many jobs a query finds."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from jobs.models import Job
from jobs.search import job_counts
from jobs.search.job_counts import count_jobs
from jobs.states import State
from tests.factories import make_job

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    cache.clear()


def test_small_number_is_counted_anew_each_time() -> None:
    make_job(State.QUEUED)
    assert count_jobs(Job.objects.all()) == 1
    make_job(State.QUEUED)
    assert count_jobs(Job.objects.all()) == 2


def test_large_number_is_kept_for_the_same_query_alone(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    monkeypatch.setattr(job_counts, "LARGE", 2)
    for name in ("a", "b"):
        make_job(State.QUEUED, name=name)
    assert count_jobs(Job.objects.order_by("-pk")) == 2
    make_job(State.QUEUED, name="a")
    with django_assert_num_queries(0):
        assert count_jobs(Job.objects.order_by("name")) == 2
    assert count_jobs(Job.objects.filter(name="a")) == 2
    assert count_jobs(Job.objects.filter(created_at__lt=timezone.now())) == 3


def test_query_that_can_find_nothing_counts_none() -> None:
    assert count_jobs(Job.objects.none()) == 0
