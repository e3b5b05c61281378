"""Pages of what went wrong."""

from __future__ import annotations

import json

import pytest
from django.conf import LazySettings

from tests.factories import make_job
from tests.jobs.web.conftest import People, browser, seen


def test_nothing_there_says_so_with_a_way_on(people: People) -> None:
    response = browser(people.owner).get("/nowhere")
    assert response.status_code == 404
    assert "Page not found" in seen(response)


def test_not_allowed_says_who_may(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota)
    response = browser(people.member).get(f"/jobs/{job.public_id}/file")
    assert response.status_code == 403
    assert "Only alice and the admins of Vision" in seen(response)


def test_the_api_answers_problem_details(people: People) -> None:
    response = browser(people.owner).get("/api/nowhere")
    assert response["Content-Type"] == "application/problem+json"
    assert json.loads(response.content)["status"] == 404


@pytest.mark.django_db
def test_a_page_that_was_open_too_long_says_so(settings: LazySettings, people: People) -> None:
    client = browser(people.owner)
    client.handler.enforce_csrf_checks = True
    response = client.post("/settings", {"theme": "dark"})
    assert response.status_code == 403
    assert "This page has expired" in seen(response)
