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


def test_a_page_says_so_and_nothing_is_written_down(hers: Client) -> None:
    answer = hers.post("/drafts/save", {"text": "half"})
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert "the database moves" in answer.content.decode()
    assert not Draft.objects.exists()


def test_an_api_says_so_with_problem_details(owner: User, job: Job) -> None:
    token = tokens.issue(owner, scopes=["read", "submit", "stop"], lifetime=timedelta(days=1))
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().post(f"/api/console/v1/jobs/{job.public_id}/stop", headers=headers)
    assert answer.status_code == 503
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "the database moves" in answer.json()["detail"]
    job.refresh_from_db()
    assert job.state == State.RUNNING
    assert Client().get("/api/console/v1/jobs", headers=headers).status_code == 200


def test_everything_can_be_looked_at_and_every_page_says_so(hers: Client, job: Job) -> None:
    for address in ("/", "/jobs/", f"/jobs/{job.public_id}/"):
        answer = hers.get(address)
        assert answer.status_code == 200
        assert "read-only for now: the database moves" in answer.content.decode()


def test_a_file_may_be_checked_as_that_changes_nothing(hers: Client) -> None:
    assert hers.post("/api/console/v1/check", {"file": "{"}, "application/json").status_code != 503


def test_people_sign_in_and_out(client: Client, owner: User) -> None:
    answer = client.post("/sign-in", {"username": "alice", "password": PASSWORD})
    assert answer.status_code == 302
    assert client.get("/").status_code == 200
    assert client.post("/sign-out").status_code == 302


def test_whoever_is_not_signed_in_changes_nothing_through_an_api() -> None:
    answer = Client().post("/api/console/v1/jobs", {"file": ""}, "application/json")
    assert answer.status_code == 503


def test_the_consoles_admins_go_on(client: Client, job: Job) -> None:
    root = make_user("root", admin=True)
    client.force_login(root)
    assert client.post(f"/jobs/{job.public_id}/stop").status_code == 302
    token = tokens.issue(root, scopes=["read", "stop"], lifetime=timedelta(days=1))
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().post(f"/api/console/v1/jobs/{job.public_id}/stop", headers=headers)
    assert answer.status_code != 503


def test_it_ends_with_its_row(hers: Client) -> None:
    ReadOnly.objects.all().delete()
    assert hers.post("/drafts/save", {"text": "half"}).status_code != 503
