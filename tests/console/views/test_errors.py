"""Pages of what went wrong."""

from __future__ import annotations

import json

import pytest
from django.conf import LazySettings

from tests.factories import make_job
from tests.jobs.web.conftest import People, browser, seen


def test_not_found_page_is_shown_for_unknown_address(people: People) -> None:
    response = browser(people.owner).get("/nowhere")
    assert response.status_code == 404
    assert "Page not found" in seen(response)


def test_forbidden_page_names_users_with_access(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota)
    response = browser(people.member).get(f"/jobs/{job.public_id}/file")
    assert response.status_code == 403
    assert "Only alice and the admins of Vision" in seen(response)


def test_api_error_returns_problem_details(people: People) -> None:
    response = browser(people.owner).get("/api/nowhere")
    assert response["Content-Type"] == "application/problem+json"
    assert json.loads(response.content)["status"] == 404


@pytest.mark.django_db
def test_expired_page_is_reported_after_csrf_failure(settings: LazySettings, people: People) -> None:
    client = browser(people.owner)
    client.handler.enforce_csrf_checks = True
    response = client.post("/settings", {"theme": "dark"})
    assert response.status_code == 403
    assert "This page has expired" in seen(response)
