"""A search that no index answers ends after a time, and the next page goes on from there."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Job
from jobs.search import windows
from tests.factories import make_job
from tests.jobs.web.conftest import People, browser, people, seen

__all__ = ["people"]


@pytest.fixture
def numbered(people: People, monkeypatch: pytest.MonkeyPatch) -> People:
    """Seven jobs of which the oldest matches "odd"; two keys are read for a page, of all from 1 on."""
    for number in range(7):
        name = "odd" if number == 0 else f"n{number}"
        make_job(owner=people.owner, quota=people.quota, name=name, pk=number + 1)
    monkeypatch.setattr(windows, "FIRST_WINDOW", 2)
    monkeypatch.setattr(windows, "SEARCH_S", -1.0)
    return people


def walk(people: People, address: str) -> list[list[str]]:
    """Return the names on each page, following the links on."""
    pages = []
    while address:
        page = browser(people.owner).get(address)
        assert page.status_code == 200
        pages.append([job.name for job in page.context["jobs"]])
        address = page.context["next_url"]
    return pages


def test_search_without_a_match_tells_how_far_it_went(numbered: People) -> None:
    text = seen(browser(numbered.owner).get("/jobs/?q=odd"))
    assert "No match as far as jobs submitted on" in text
    assert "Continue searching" in text


@pytest.mark.parametrize("query", ["q=odd", "q=odd&sort=submitted", "q=odd&sort=name"])
def test_search_goes_on_until_all_jobs_are_searched(numbered: People, query: str) -> None:
    pages = walk(numbered, f"/jobs/?{query}")
    assert [name for page in pages for name in page] == ["odd"]
    assert len(pages) > 1


def test_search_leads_back_to_newer_jobs(numbered: People) -> None:
    client = browser(numbered.owner)
    oldest = Job.objects.get(name="odd").pk
    page: Any = client.get(f"/jobs/?q=n6&before={oldest}")
    assert page.context["jobs"] == []
    while page.context["previous_url"]:
        page = client.get(page.context["previous_url"])
    assert [job.name for job in page.context["jobs"]] == ["n6"]


def test_search_reads_on_while_windows_are_quick(numbered: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "SEARCH_S", 600.0)
    assert walk(numbered, "/jobs/?q=odd") == [["odd"]]


def test_export_and_search_by_index_are_whole(numbered: People) -> None:
    client = browser(numbered.owner)
    assert "odd" in client.get("/jobs/export?q=odd").content.decode()
    assert walk(numbered, "/jobs/?q=owner:me") == [["n6", "n5", "n4", "n3", "n2", "n1", "odd"]]
    named = client.get("/api/console/v1/jobs?owner=me&name=odd").json()
    assert ([job["name"] for job in named["jobs"]], named["next"]) == (["odd"], None)


def test_api_search_goes_on_by_next(numbered: People) -> None:
    client, address, names = browser(numbered.owner), "/api/console/v1/jobs?q=odd", []
    while address:
        answer = client.get(address).json()
        names.append([job["name"] for job in answer["jobs"]])
        address = answer["next"]
    assert names[0] == []
    assert [name for page in names for name in page] == ["odd"]
