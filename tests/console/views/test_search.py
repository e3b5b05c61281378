"""What Ctrl-K finds."""

from __future__ import annotations

import json
from datetime import timedelta

from quotas.accounts import tokens
from quotas.models import User
from tests.factories import make_job
from tests.jobs.web.conftest import People, browser

JOB = "list-details"


def labels(user: User, text: str, icon: str) -> list[str]:
    """The labels of the results of a kind, which its icon tells."""
    response = browser(user).get("/search", {"q": text})
    return [item["label"] for item in json.loads(response.content)["items"] if item["icon"] == icon]


def test_jobs_by_the_beginning_of_their_name_or_by_id(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, name="train")
    make_job(owner=people.owner, quota=people.quota, name="evaluate")
    assert labels(people.owner, "tr", JOB) == ["train"]
    assert labels(people.member, job.public_id, JOB) == ["train"]
    assert labels(people.stranger, job.public_id, JOB) == []
    assert labels(people.owner, "", JOB) == []


def test_a_result_leads_to_its_page(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota)
    [item] = json.loads(browser(people.owner).get("/search", {"q": job.name}).content)["items"]
    assert item["url"] == f"/jobs/{job.public_id}/"
    assert "Queued" in item["hint"]


def test_a_search_without_a_sign_in_gets_no_page(db: None) -> None:
    assert browser().get("/search?q=a", headers={"Accept": "application/json"}).status_code == 401


def test_settings_tokens_and_documentation_are_found(people: People) -> None:
    tokens.issue(people.owner, name="laptop", scopes=["read"], lifetime=timedelta(days=1))
    assert labels(people.owner, "ssh ke", "settings") == ["SSH keys"]
    assert labels(people.owner, "settings secr", "settings") == ["Secrets"]
    assert labels(people.owner, "lapt", "key") == ["laptop"]
    assert labels(people.member, "lapt", "key") == []
    assert labels(people.member, "sweeps", "help")[0].startswith("Sweeps")


def test_admin_pages_are_found_by_staff_alone(people: People) -> None:
    assert "Incidents" in labels(people.admin, "incidents", "shield-lock")
    assert labels(people.owner, "incidents", "shield-lock") == []
