"""The list of jobs by its query line: filters, orders, columns, views, and acts on several."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from jobs.models import ChosenColumns, Job, JobFile, JobStar, JobTag, SavedView, Visibility
from jobs.search import job_pages
from jobs.states import State
from jobs.web.job_list import page as page_view
from quotas.models import User
from tests.factories import make_job
from tests.jobs.training_metrics.test_results import add
from tests.jobs.web.conftest import People, browser, seen


def found(user: User, **query: str) -> list[str]:
    return [job.name for job in browser(user).get("/jobs/", query).context["jobs"]]


@pytest.fixture
def three(people: People) -> list[Job]:
    """A running job with GPUs, an old failed one, and a private one of the member's."""
    place: dict[str, Any] = {"quota": people.quota}
    big = make_job(
        State.RUNNING, owner=people.owner, name="llama-lora-seed299", gpus=8, gpu_type="A100", **place
    )
    old = make_job(State.FAILED, owner=people.owner, name="bert", priority=7, replicas_total=4, **place)
    other = make_job(State.SUCCEEDED, owner=people.member, name="gpt", **place)
    Job.objects.filter(pk=old.pk).update(created_at=Now() - timedelta(days=30), description="A baseline")
    JobFile.objects.filter(job=big).update(text='{"command": "torchrun train.py"}')
    for job, name in ((big, "nlp"), (old, "team=vision"), (other, "nlp")):
        JobTag.objects.create(job=job, name=name)
    JobStar.objects.create(user=people.owner, job=old)
    return [big, old, other]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("seed299", {"llama-lora-seed299"}),
        ("SEED lora", {"llama-lora-seed299"}),
        ("-lora", {"bert", "gpt"}),
        ("state:running state:failed", {"llama-lora-seed299", "bert"}),
        ("-state:running", {"bert", "gpt"}),
        ("owner:me", {"llama-lora-seed299", "bert"}),
        ("owner:me owner:{member}", {"llama-lora-seed299", "bert", "gpt"}),
        ("owner:nobody", set()),
        ("gpu>4", {"llama-lora-seed299"}),
        ("gpu:a100", {"llama-lora-seed299"}),
        ("gpu:0", {"bert", "gpt"}),
        ("replicas>=4 priority:7", {"bert"}),
        ("since:7d", {"llama-lora-seed299", "gpt"}),
        ("-since:7d", {"bert"}),
        ("tag:team", {"bert"}),
        ("tag:TEAM=vision", {"bert"}),
        ("description:baseline", {"bert"}),
        ('command:"torchrun train"', {"llama-lora-seed299"}),
        ("is:starred", {"bert"}),
        ("workspace:vision cluster:{cluster} quota:{quota}", {"llama-lora-seed299", "bert", "gpt"}),
        ("cluster:elsewhere", set()),
    ],
)
def test_query_line_finds_jobs(people: People, three: list[Job], text: str, names: set[str]) -> None:
    quota = people.quota
    filled = text.format(member=people.member.username, cluster=quota.cluster.slug, quota=quota.slug)
    assert set(found(people.owner, q=filled)) == names


def test_tags_and_texts_of_unreadable_jobs_are_not_searched(people: People, three: list[Job]) -> None:
    assert found(people.owner, q="tag:nlp") == ["llama-lora-seed299"]
    assert set(found(people.manager, q="tag:nlp")) == {"llama-lora-seed299", "gpt"}
    assert found(people.member, q="description:baseline") == []
    Job.objects.filter(name="bert").update(visibility=Visibility.PUBLIC)
    assert found(people.member, q="description:baseline") == ["bert"]
    assert found(people.member, q="is:starred") == []


def test_wrong_term_is_named_and_what_was_typed_stays(people: People, three: list[Job]) -> None:
    text = seen(browser(people.owner).get("/jobs/", {"q": "stat:failed gpu>4"}))
    assert "Did you mean “state”?" in text
    assert 'value="stat:failed gpu>4"' in text
    assert "llama-lora-seed299" in text
    assert ">bert<" not in text


def test_columns_sort_the_newest_jobs(
    people: People, three: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(people.owner, sort="name") == ["bert", "gpt", "llama-lora-seed299"]
    assert found(people.owner, sort="-gpus")[0] == "llama-lora-seed299"
    assert found(people.owner, sort="nonsense") == ["gpt", "bert", "llama-lora-seed299"]
    monkeypatch.setattr(job_pages, "MOST_SORTED", 2)
    page = browser(people.owner).get("/jobs/", {"sort": "name"})
    assert [job.name for job in page.context["jobs"]] == ["bert", "gpt"]
    assert "newest 1,000" in seen(page)


def test_sorted_pages_lead_on_and_back(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_view, "list_jobs", partial(job_pages.list_jobs, size=5))
    for number in range(12):
        make_job(owner=people.owner, quota=people.quota, name=f"n{number:03}")
    client = browser(people.owner)
    second = client.get(client.get("/jobs/?sort=name").context["next_url"])
    assert [job.name for job in second.context["jobs"]][:2] == ["n005", "n006"]
    third = client.get(second.context["next_url"])
    assert (len(third.context["jobs"]), third.context["next_url"]) == (2, "")
    assert client.get(second.context["previous_url"]).context["previous_url"] == ""


def test_chosen_columns_are_shown_until_the_usual_ones_are_chosen(people: People, three: list[Job]) -> None:
    client = browser(people.owner)
    client.post("/jobs/columns", {"column": ["tags", "priority", "nonsense"]})
    page = client.get("/jobs/")
    assert [each.name for each in page.context["columns"]] == ["priority", "tags"]
    assert "team=vision" in seen(page)
    assert "gpt" not in [name for job in page.context["tags"].values() for name in job]
    client.post("/jobs/columns", {})
    assert not ChosenColumns.objects.exists()


def test_saved_view_is_ones_own_and_can_be_deleted(people: People, three: list[Job]) -> None:
    client, other = browser(people.owner), browser(people.member)
    client.post("/jobs/views", {"name": " My  failures ", "query": "owner:me state:failed", "sort": "-gpus"})
    (view,) = client.get("/jobs/").context["views"]
    assert (view["label"], view["on"]) == ("My failures", False)
    listed = client.get("/jobs/" + view["url"])
    assert [job.name for job in listed.context["jobs"]] == ["bert"]
    assert listed.context["views"][0]["on"]
    assert other.get("/jobs/").context["views"] == []
    other.post("/jobs/views/delete", {"view": view["pk"]})
    assert SavedView.objects.count() == 1
    client.post("/jobs/views/delete", {"view": view["pk"]})
    assert not SavedView.objects.exists()


def test_acts_on_several_jobs_are_done_where_allowed_and_counted(people: People, three: list[Job]) -> None:
    big, old, _other = three
    ids = [job.public_id for job in three]
    client = browser(people.owner)
    said = seen(client.post("/jobs/several", {"act": "stop", "id": ids}, follow=True))
    assert "Stopping 1 job." in said
    assert "Not done with 2 jobs" in said
    said = seen(client.post("/jobs/several", {"act": "tag", "tag": "keep", "id": ids}, follow=True))
    assert "2 jobs tagged." in said
    assert set(JobTag.objects.filter(name="keep").values_list("job", flat=True)) == {big.pk, old.pk}
    client.post("/jobs/several", {"act": "untag", "tag": "keep", "id": ids})
    client.post("/jobs/several", {"act": "star", "id": ids})
    assert JobStar.objects.filter(user=people.owner).count() == 3
    client.post("/jobs/several", {"act": "delete", "id": ids})
    assert list(Job.objects.exclude(deleted_at=None)) == [old]
    assert "Enter a tag." in seen(client.post("/jobs/several", {"act": "tag", "id": ids}, follow=True))
    assert "Select jobs first." in seen(client.post("/jobs/several", {"act": "stop"}, follow=True))
    assert client.post("/jobs/several", {"act": "sell", "id": ids}).status_code == 400


def test_export_has_visible_jobs_with_safe_cells(people: People, three: list[Job]) -> None:
    make_job(owner=people.owner, quota=people.quota, name="=cmd()")
    make_job(owner=people.stranger, name="his")
    client = browser(people.owner)
    every = list(csv.DictReader(io.StringIO(client.get("/jobs/export").content.decode())))
    assert [row["name"] for row in every] == ["'=cmd()", "gpt", "bert", "llama-lora-seed299"]
    assert every[3]["gpu_type"] == "A100"
    chosen = client.post("/jobs/several", {"act": "export", "id": [three[0].public_id]})
    assert [row["name"] for row in csv.DictReader(io.StringIO(chosen.content.decode()))] == [three[0].name]


def test_star_and_labels_change_on_the_job_page(people: People, three: list[Job]) -> None:
    job = three[0]
    client, other = browser(people.owner), browser(people.member)
    client.post(f"/jobs/{job.public_id}/star")
    assert JobStar.objects.filter(user=people.owner, job=job).exists()
    client.post(f"/jobs/{job.public_id}/star", {"off": "1"})
    assert not JobStar.objects.filter(user=people.owner, job=job).exists()
    client.post(f"/jobs/{job.public_id}/labels", {"description": "<b>best</b>", "tags": "a, b c ,a,"})
    page = client.get(f"/jobs/{job.public_id}/").content.decode()
    assert "&lt;b&gt;best&lt;/b&gt;" in page
    assert set(JobTag.objects.filter(job=job).values_list("name", flat=True)) == {"a", "b c"}
    assert other.post(f"/jobs/{job.public_id}/labels", {"tags": "mine"}).status_code == 403


def test_best_and_last_values_of_metrics_are_columns_for_readers(
    people: People, three: list[Job], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    add(three[0], 0.5, 0.125, 0.25, name="val_loss")
    client = browser(people.owner)
    assert "val_loss (best)" in seen(client.get("/jobs/"))
    client.post("/jobs/columns", {"column": ["best:val_loss", "last:val_loss", "best:", "worst:val_loss"]})
    page = client.get("/jobs/")
    assert [each.name for each in page.context["columns"]] == ["best:val_loss", "last:val_loss"]
    assert ">0.125<" in seen(page).replace(" ", "")
    with CaptureQueriesContext(connection) as before:
        client.get("/jobs/")
    for job in three[1:]:
        add(job, 0.75, name="val_loss")
    with django_assert_num_queries(len(before)):
        client.get("/jobs/")
    ChosenColumns.objects.create(user=people.member, names=["best:val_loss"])
    assert ">0.125<" not in seen(browser(people.member).get("/jobs/")).replace(" ", "")
