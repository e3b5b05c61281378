"""Big tables stay quick: no page of the admin counts all of one, and what is searched has an index."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin as django_admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from quotas.admin.base import Uncounted
from quotas.admin.paging import UncountedPaginator
from quotas.models import User
from tests.factories import make_job

django_admin.autodiscover()
pytestmark = pytest.mark.django_db

BIG = sorted(
    (model for model, page in django_admin.site._registry.items() if isinstance(page, Uncounted)),
    key=lambda model: model._meta.label,
)
GROW = {
    "jobs.Attempt",
    "jobs.Draft",
    "jobs.Endpoint",
    "jobs.EndpointVisit",
    "jobs.AccessSession",
    "jobs.Event",
    "jobs.Job",
    "jobs.JobFile",
    "jobs.LogChunk",
    "jobs.LogStream",
    "jobs.Run",
    "jobs.Replica",
    "quotas.AdminAction",
    "quotas.Request",
    "quotas.Reservation",
    "quotas.UsageHour",
}


def test_growing_models_use_uncounted_paginator() -> None:
    assert {model._meta.label for model in BIG} >= GROW
    for model in BIG:
        page = django_admin.site._registry[model]
        assert page.paginator is UncountedPaginator
        assert not page.show_full_result_count


@pytest.mark.parametrize("model", BIG, ids=lambda model: model._meta.label)
def test_admin_list_page_counts_no_whole_table(model: type, admin: Client) -> None:
    make_job()
    address = reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist")  # type: ignore[attr-defined]
    table = model._meta.db_table  # type: ignore[attr-defined]
    with CaptureQueriesContext(connection) as queries:
        assert admin.get(address).status_code == 200
    whole = [
        query["sql"]
        for query in queries
        if re.search(rf'SELECT COUNT\(.*FROM "{table}"', query["sql"]) and "LIMIT" not in query["sql"]
    ]
    assert whole == []
    assert len(queries) < 40


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "asked",
    [
        {"q": "abcdefghijkl"},
        {"q": "root"},
    ],
)
def test_job_search_in_admin_uses_an_index(admin: Client, asked: dict[str, str]) -> None:
    make_job(owner=User.objects.get(username="root"))
    with CaptureQueriesContext(connection) as queries:
        assert admin.get("/admin/jobs/job/", asked).status_code == 200
    looked = [each["sql"] for each in queries if 'FROM "jobs_job"' in each["sql"] and "WHERE" in each["sql"]]
    assert looked
    with connection.cursor() as cursor:
        for sql in looked:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = [row[3] for row in cursor.fetchall() if "jobs_job" in row[3]]
            assert all("USING" in step and "INDEX" in step for step in plan), (sql, plan)


@pytest.mark.parametrize("model", ["jobs_job", "jobs_attempt", "quotas_reservation", "quotas_adminaction"])
def test_machine_written_models_cannot_be_added_by_hand(model: str, admin: Client) -> None:
    assert admin.get(reverse(f"admin:{model}_add")).status_code == 403
