"""What Ctrl-K finds."""

from __future__ import annotations

import json

from tests.factories import make_job
from tests.jobs.web.conftest import People, browser


def labels(user: object, text: str) -> list[str]:
    response = browser(user).get("/search", {"q": text})  # type: ignore[arg-type]
    return [item["label"] for item in json.loads(response.content)["items"]]


def test_jobs_by_the_beginning_of_their_name_or_by_id(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, name="train")
    make_job(owner=people.owner, quota=people.quota, name="evaluate")
    assert labels(people.owner, "tr") == ["train"]
    assert labels(people.member, job.public_id) == ["train"]
    assert labels(people.stranger, job.public_id) == []
    assert labels(people.owner, "") == []


def test_a_result_leads_to_its_page(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota)
    [item] = json.loads(browser(people.owner).get("/search", {"q": job.name}).content)["items"]
    assert item["url"] == f"/jobs/{job.public_id}/"
    assert "Queued" in item["hint"]


def test_a_search_without_a_sign_in_gets_no_page(db: None) -> None:
    assert browser().get("/search?q=a", headers={"Accept": "application/json"}).status_code == 401
