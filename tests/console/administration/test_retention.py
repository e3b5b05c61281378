"""The page of retention: nothing is removed before its preview was confirmed."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobs.models import Attempt, Event, Job, RetentionPolicy
from jobs.states import State
from quotas.models import AuditEntry, Quota
from tests.console.administration.conftest import OTHERS, client_of
from tests.factories import make_job, make_quota, make_workspace

pytestmark = pytest.mark.django_db

PAGE = "/admin/retention/"


def old_job(quota: Quota, days: int = 100) -> Job:
    job = make_job(State.SUCCEEDED, quota=quota)
    moment = timezone.now() - timedelta(days=days)
    Job.objects.filter(pk=job.pk).update(ended_at=moment)
    Attempt.objects.filter(job=job).update(ended_at=moment, kept_until=moment)
    Event.objects.create(job=job, kind=Event.Kind.ENDED)
    return job


def text_of(response: object) -> str:
    return re.sub(r"(<[^>]+>|\s)+", " ", response.content.decode())  # type: ignore[attr-defined]


@pytest.mark.parametrize("who", OTHERS)
def test_retention_is_hidden_from_non_admins(who: str, quota: Quota) -> None:
    client = client_of(who, quota)
    for address in (PAGE, f"{PAGE}{quota.workspace.slug}/"):
        assert client.get(address).status_code in {302, 403}
        assert client.post(address, {"jobs": 1, "save": "yes", "shown": "1,,,,"}).status_code in {302, 403}
    assert not RetentionPolicy.objects.exists()


def test_preview_names_what_goes_and_saves_nothing(admin: Client, quota: Quota) -> None:
    old_job(quota)
    response = admin.post(PAGE, {"jobs": 365, "events": 30})
    assert "Vision 0 0 1 0" in text_of(response)
    assert not RetentionPolicy.objects.exists()
    assert "Nothing is old enough" in text_of(admin.post(PAGE, {"jobs": 365}))


def test_saving_needs_the_preview_of_the_same_days(admin: Client, quota: Quota) -> None:
    response = admin.post(PAGE, {"jobs": 90, "save": "yes", "shown": "365,,,,"})
    assert response.status_code == 200
    assert not RetentionPolicy.objects.exists()
    shown = response.context["shown"]
    assert admin.post(PAGE, {"jobs": 90, "save": "yes", "shown": shown}).status_code == 302
    policy = RetentionPolicy.objects.get()
    assert (policy.workspace, policy.jobs, policy.logs) == (None, 90, None)
    assert AuditEntry.objects.filter(content_type__model="retentionpolicy").exists()


def test_workspace_is_told_all_that_is_wrong_at_once(admin: Client, quota: Quota) -> None:
    RetentionPolicy.objects.create(jobs=90, logs=60)
    response = admin.post(f"{PAGE}vision/", {"jobs": 91, "logs": 61, "events": 0})
    assert response.status_code == 422
    told = text_of(response)
    assert "At most 90 days" in told
    assert "At most 60 days" in told
    assert 'value="61"' in response.content.decode(), "what was typed stays"
    page = f"{PAGE}vision/"
    assert admin.post(page, {"logs": 7, "save": "yes", "shown": ",7,,,"}).status_code == 302
    assert RetentionPolicy.objects.get(workspace=quota.workspace).logs == 7
    assert "Vision 90 7 – – –" in text_of(admin.get(PAGE))


def test_page_costs_as_many_queries_for_many_workspaces(admin: Client, quota: Quota) -> None:
    counts = []
    for _number in range(2):
        old_job(quota)
        admin.get(PAGE)
        with CaptureQueriesContext(connection) as queries:
            admin.post(PAGE, {"events": 30})
        counts.append(len(queries))
        old_job(make_quota(make_workspace(), quota.cluster))
    assert counts[0] == counts[1]
