"""The list of jobs: who sees what, filters, pages, and how many queries that takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest

from jobs.models import Job, JobStar
from jobs.search import job_pages
from jobs.states import State
from jobs.web.job_list import page as page_view
from jobs.web.job_list.columns import choose_columns
from quotas.models import Membership, Role
from tests.factories import make_job, make_quota, make_workspace
from tests.jobs.web.conftest import People, browser, fragment, seen

Queries = Callable[..., AbstractContextManager[object]]


def names_in(text: str, *names: str) -> set[str]:
    return {name for name in names if f'title="{name}">{name}</a>' in text}


def test_job_list_shows_only_jobs_of_own_workspaces(people: People) -> None:
    make_job(owner=people.owner, quota=people.quota, name="hers")
    make_job(owner=people.stranger, name="his")
    expected = {
        people.owner: {"hers"},
        people.member: {"hers"},
        people.manager: {"hers"},
        people.stranger: {"his"},
        people.admin: {"hers", "his"},
    }
    for user, names in expected.items():
        assert names_in(seen(browser(user).get("/jobs/")), "hers", "his") == names


def test_job_list_without_sign_in_redirects_to_sign_in(db: None) -> None:
    response = browser().get("/jobs/?state=failed")
    assert response.status_code == 302
    assert response["Location"] == "/sign-in?next=/jobs/%3Fstate%3Dfailed"


def test_deleted_jobs_are_not_listed(people: People) -> None:
    job = make_job(State.FAILED, owner=people.owner, quota=people.quota, name="gone")
    Job.objects.filter(pk=job.pk).update(deleted_at=job.created_at)
    assert not names_in(seen(browser(people.owner).get("/jobs/")), "gone")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=waiting", {"queued", "pending"}),
        ("state=running&state=failed", {"running", "failed", "bobs"}),
        ("state=replicas-failed", {"partly"}),
        ("state=running&state=replicas-failed", {"running", "partly"}),
        ("owner=me", {"queued", "pending", "running", "failed", "partly"}),
        ("q=par", {"partly"}),
        ("q=no-such-name", set()),
        ("workspace=vision&state=failed", {"failed", "bobs"}),
        ("workspace=elsewhere", set()),
        ("state=nonsense&after=x&before=-1", {"queued", "pending", "running", "failed", "partly", "bobs"}),
    ],
)
def test_job_list_filters_select_matching_jobs(people: People, query: str, names: set[str]) -> None:
    place: dict[str, Any] = {"owner": people.owner, "quota": people.quota}
    make_job(State.QUEUED, name="queued", **place)
    make_job(State.PENDING, name="pending", **place)
    make_job(State.RUNNING, name="running", **place)
    make_job(State.FAILED, name="failed", replicas_failed=0, **place)
    make_job(State.SUCCEEDED, name="partly", replicas_failed=1, **place)
    make_job(State.FAILED, name="bobs", replicas_failed=0, owner=people.member, quota=people.quota)
    every = ("queued", "pending", "running", "failed", "partly", "bobs")
    found = names_in(seen(browser(people.owner).get(f"/jobs/?{query}")), *every)
    assert found == names


def test_job_matching_two_filters_is_listed_once(people: People) -> None:
    make_job(State.FAILED, owner=people.owner, quota=people.quota, replicas_failed=1)
    assert len(browser(people.owner).get("/jobs/?state=failed&state=replicas-failed").context["jobs"]) == 1


def test_own_jobs_in_a_left_workspace_are_not_listed(people: People) -> None:
    make_job(owner=people.owner, quota=people.quota, name="left")
    Membership.objects.filter(user=people.owner).delete()
    for query in ("", "?owner=me"):
        assert not browser(people.owner).get(f"/jobs/{query}").context["jobs"]


def test_job_list_with_many_workspaces_lists_all_jobs(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "MOST_RANGES", 2)
    for number in range(5):
        quota = make_quota(make_workspace(members={people.member: Role.DEVELOPER}))
        make_job(State.FAILED, owner=people.member, quota=quota, name=f"n{number}")
    for query in ("", "?owner=me", "?state=failed&state=running&state=lost"):
        found = browser(people.member).get(f"/jobs/{query}").context["jobs"]
        assert [job.name for job in found] == ["n4", "n3", "n2", "n1", "n0"]


def test_job_search_finds_job_by_each_of_its_ids(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota, name="wanted")
    make_job(owner=people.owner, quota=people.quota, name="other")
    for text in (job.public_id, f"dlc{job.public_id}", f"job-{job.public_id}", f"abc123-{job.public_id}-2"):
        found = names_in(seen(browser(people.owner).get("/jobs/", {"q": text})), "wanted", "other")
        assert found == {"wanted"}, text


def test_job_list_pages_lead_forward_and_back_without_gap(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_view, "list_jobs", partial(job_pages.list_jobs, size=5))
    for number in range(12):
        make_job(owner=people.owner, quota=people.quota, name=f"n{number:03}")
    client = browser(people.owner)
    first = client.get("/jobs/")
    assert [job.name for job in first.context["jobs"]] == [f"n{number:03}" for number in range(11, 6, -1)]
    assert first.context["previous_url"] == ""
    second = client.get(first.context["next_url"])
    third = client.get(second.context["next_url"])
    assert [job.name for job in third.context["jobs"]] == [f"n{number:03}" for number in range(1, -1, -1)]
    assert third.context["next_url"] == ""
    back = client.get(third.context["previous_url"])
    assert [job.pk for job in back.context["jobs"]] == [job.pk for job in second.context["jobs"]]
    assert client.get(back.context["previous_url"]).context["previous_url"] == ""


def test_job_list_with_oldest_order_lists_oldest_first(people: People) -> None:
    for name in ("old", "new"):
        make_job(owner=people.owner, quota=people.quota, name=name)
    listed = browser(people.owner).get("/jobs/?order=oldest").context["jobs"]
    assert [job.name for job in listed] == ["old", "new"]


def test_filter_chips_toggle_their_filter_and_preserve_the_others(people: People) -> None:
    response = browser(people.owner).get("/jobs/?state=failed&q=train&after=7")
    chips = {chip["label"]: chip for chip in response.context["state_chips"]}
    assert chips["Failed"]["on"]
    assert chips["Failed"]["url"] == "?q=train"
    assert chips["Running"]["url"] == "?q=train+state%3Afailed+state%3Arunning"


def test_queued_job_shows_its_reason(people: People) -> None:
    reason: dict[str, Any] = {
        "reason_code": "no_such_gpu",
        "reason_params": {"cluster": "This machine", "gpu_type": "TITANX"},
    }
    make_job(State.QUEUED, owner=people.owner, quota=people.quota, **reason)
    assert "TITANX" in seen(browser(people.owner).get("/jobs/"))


def test_job_pending_in_engine_queue_shows_its_reason(people: People) -> None:
    reason: dict[str, Any] = {"reason_code": "engine_queue", "reason_params": {"slurm": "Resources"}}
    make_job(State.PENDING, owner=people.owner, quota=people.quota, **reason)
    for address in ("/jobs/", "/"):
        assert "Waiting for free resources on the cluster." in seen(browser(people.owner).get(address))


def test_empty_job_list_suggests_next_step(people: People) -> None:
    client = browser(people.owner)
    assert "No jobs yet" in seen(client.get("/jobs/"))
    filtered = seen(client.get("/jobs/?state=failed"))
    assert "No jobs match these filters" in filtered
    assert "Show all jobs" in filtered
    assert "No more jobs match these filters" in seen(client.get("/jobs/?state=failed&after=1"))


def test_job_names_are_escaped_as_text(people: People) -> None:
    make_job(owner=people.owner, quota=people.quota, name="<script>alert(1)</script>")
    assert b"<script>alert" not in browser(people.owner).get("/jobs/").content


def test_job_list_fragment_has_own_rows_and_preserves_ticked_ones(people: People) -> None:
    job = make_job(State.RUNNING, owner=people.owner, quota=people.quota, name="train")
    response = browser(people.owner).get(
        "/jobs/", {"state": "running", "id": job.public_id}, headers=fragment("jobs-list")
    )
    text = seen(response)
    assert text.startswith('<div id="jobs-list"')
    assert f'value="{job.public_id}" checked' in text
    assert f"job:{job.public_id}" in text


def shown_versions(response: Any) -> dict[str, Any]:
    """Return what a page with this list sends when something of it has changed."""
    text = response.content.decode()
    table = re.findall(r'name="table" value="([^"]+)"', text)
    return {"table": table, "row": re.findall(r'name="row"\s+value="([^"]+)"', text)}


def test_job_list_fragment_has_only_rows_that_changed(people: People) -> None:
    jobs = [make_job(State.PENDING, owner=people.owner, quota=people.quota) for _ in range(3)]
    client, headers = browser(people.member), fragment("jobs-list")
    shown = shown_versions(client.get("/jobs/"))
    unchanged = client.get("/jobs/", shown, headers=headers)
    assert (unchanged["HX-Reswap"], unchanged.content.strip()) == ("none", b"")
    Job.objects.filter(pk=jobs[1].pk).update(state=State.RUNNING, replicas_running=1)
    changed = client.get("/jobs/", {**shown, "id": jobs[1].public_id}, headers=headers)
    text = seen(changed)
    assert text.startswith(f'<tr id="row-{jobs[1].public_id}" hx-swap-oob="true">')
    assert text.count("<tr") == 1
    assert f'value="{jobs[1].public_id}" checked' in text
    again = {
        "table": shown["table"],
        "row": [*shown["row"][:1], *shown_versions(changed)["row"], shown["row"][2]],
    }
    assert not client.get("/jobs/", again, headers=headers).content.strip()


def test_job_list_fragment_shows_star_of_its_viewer_only(people: People) -> None:
    job = make_job(owner=people.owner, quota=people.quota)
    mine, theirs, headers = browser(people.owner), browser(people.member), fragment("jobs-list")
    shown = [shown_versions(client.get("/jobs/")) for client in (mine, theirs)]
    JobStar.objects.create(user=people.owner, job=job)
    assert "★" in seen(mine.get("/jobs/", shown[0], headers=headers))
    assert not theirs.get("/jobs/", shown[1], headers=headers).content.strip()


@pytest.mark.parametrize("change", ["submitted", "left", "language", "columns"])
def test_job_list_fragment_is_whole_where_more_than_rows_differ(people: People, change: str) -> None:
    make_job(owner=people.owner, quota=people.quota, name="hers")
    client = browser(people.member)
    shown = shown_versions(client.get("/jobs/"))
    if change == "submitted":
        make_job(owner=people.owner, quota=people.quota, name="newer")
    elif change == "left":
        Membership.objects.filter(user=people.member).delete()
    elif change == "columns":
        choose_columns(people.member, ["priority"])
    language = {"Accept-Language": "zh-hans"} if change == "language" else {}
    response = client.get("/jobs/", shown, headers={**fragment("jobs-list"), **language})
    assert "HX-Reswap" not in response
    assert seen(response).startswith('<div id="jobs-list"')
    assert names_in(seen(response), "hers") == (set() if change == "left" else {"hers"})


@pytest.mark.parametrize("headers", [{}, fragment("jobs-list")], ids=["page", "fragment"])
def test_job_list_query_count_does_not_grow_with_jobs(
    people: People, headers: dict[str, str], django_assert_max_num_queries: Queries
) -> None:
    for owner in (people.owner, people.member, people.manager):
        quota = make_quota(people.quota.workspace)
        for state in (State.RUNNING, State.QUEUED, State.FAILED):
            for _each in range(5):
                make_job(state, owner=owner, quota=quota)
    client = browser(people.owner)
    client.get("/jobs/")
    with django_assert_max_num_queries(21 if not headers else 10):
        client.get("/jobs/", headers=headers)
