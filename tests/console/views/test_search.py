"""What Ctrl-K finds."""

from __future__ import annotations

import json
from datetime import timedelta

from quotas.accounts import access_keys, tokens
from quotas.models import User
from tests.factories import make_job
from tests.jobs.web.conftest import People, browser

JOB = "list-details"


def labels(user: User, text: str, icon: str) -> list[str]:
    """The labels of the results of a kind, which its icon tells."""
    response = browser(user).get("/search", {"q": text})
    return [item["label"] for item in json.loads(response.content)["items"] if item["icon"] == icon]


def test_search_finds_visible_jobs_by_name_prefix_or_id(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, name="train")
    make_job(owner=people.owner, quota=people.quota, name="evaluate")
    assert labels(people.owner, "tr", JOB) == ["train"]
    assert labels(people.member, job.public_id, JOB) == ["train"]
    assert labels(people.stranger, job.public_id, JOB) == []
    assert labels(people.owner, "", JOB) == []


def test_search_result_links_to_its_page(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota)
    [item] = json.loads(browser(people.owner).get("/search", {"q": job.name}).content)["items"]
    assert item["url"] == f"/jobs/{job.public_id}/"
    assert "Queued" in item["hint"]


def test_search_without_sign_in_returns_401(db: None) -> None:
    assert browser().get("/search?q=a", headers={"Accept": "application/json"}).status_code == 401


def test_search_finds_settings_own_tokens_and_documentation(people: People) -> None:
    tokens.issue(people.owner, name="laptop", scopes=["read"], lifetime=timedelta(days=1))
    assert labels(people.owner, "ssh ke", "settings") == ["SSH keys"]
    assert labels(people.owner, "settings secr", "settings") == ["Secrets"]
    assert labels(people.owner, "lapt", "key") == ["laptop"]
    assert labels(people.member, "lapt", "key") == []
    key = access_keys.issue(people.owner, name="cluster", scopes=["read"]).row
    assert labels(people.owner, "clust", "key") == labels(people.owner, key.key_id, "key") == ["cluster"]
    assert labels(people.member, key.key_id, "key") == []
    assert labels(people.owner, "access keys", "settings") == ["Access keys"]
    assert labels(people.member, "sweeps", "help")[0].startswith("Sweeps")


def test_search_finds_admin_pages_for_staff_only(people: People) -> None:
    assert "Incidents" in labels(people.admin, "incidents", "shield-lock")
    assert labels(people.owner, "incidents", "shield-lock") == []
