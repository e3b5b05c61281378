"""A read-only console: what is refused, how, and what goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from jobs.models import Draft, Job
from jobs.states import State
from quotas.accounts import tokens
from quotas.models import ReadOnly, User
from tests.factories import PASSWORD, make_job, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(db: None) -> User:
    return make_user("alice")


@pytest.fixture
def job(owner: User) -> Job:
    return make_job(State.RUNNING, owner=owner)


@pytest.fixture
def hers(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


@pytest.fixture(autouse=True)
def _read_only(job: Job) -> None:
    ReadOnly.objects.create(why="the database moves")


def test_read_only_page_returns_503_with_reason_and_saves_nothing(hers: Client) -> None:
    answer = hers.post("/drafts/save", {"text": "half"})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert "the database moves" in answer.content.decode()
    assert not Draft.objects.exists()


def test_read_only_api_returns_problem_details_and_changes_nothing(owner: User, job: Job) -> None:
    token = tokens.issue(owner, scopes=["read", "submit", "stop"], lifetime=timedelta(days=1))
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().post(f"/api/console/v1/jobs/{job.public_id}/stop", headers=headers)
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "the database moves" in answer.json()["detail"]
    job.refresh_from_db()
    assert job.state == State.RUNNING
    assert Client().get("/api/console/v1/jobs", headers=headers).status_code == 200


def test_read_only_pages_can_be_viewed_and_show_a_notice(hers: Client, job: Job) -> None:
    for address in ("/", "/jobs/", f"/jobs/{job.public_id}/"):
        answer = hers.get(address)
        assert answer.status_code == 200
        assert "read-only for now: the database moves" in answer.content.decode()


def test_read_only_console_still_checks_job_files(hers: Client) -> None:
    assert hers.post("/api/console/v1/check", {"file": "{"}, "application/json").status_code != 503


def test_read_only_console_still_allows_sign_in_and_sign_out(client: Client, owner: User) -> None:
    answer = client.post("/sign-in", {"username": "alice", "password": PASSWORD})
    assert answer.status_code == 302
    assert client.get("/").status_code == 200
    assert client.post("/sign-out").status_code == 302


def test_read_only_api_refuses_anonymous_changes() -> None:
    answer = Client().post("/api/console/v1/jobs", {"file": ""}, "application/json")
    assert answer.status_code == 503


def test_read_only_mode_does_not_apply_to_console_admins(client: Client, job: Job) -> None:
    root = make_user("root", admin=True)
    client.force_login(root)
    assert client.post(f"/jobs/{job.public_id}/stop").status_code == 302
    token = tokens.issue(root, scopes=["read", "stop"], lifetime=timedelta(days=1))
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().post(f"/api/console/v1/jobs/{job.public_id}/stop", headers=headers)
    assert answer.status_code != 503


def test_read_only_mode_ends_when_its_row_is_deleted(hers: Client) -> None:
    ReadOnly.objects.all().delete()
    assert hers.post("/drafts/save", {"text": "half"}).status_code != 503
