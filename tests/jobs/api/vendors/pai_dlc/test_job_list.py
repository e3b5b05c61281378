"""ListJobs: filters, orders, pages, and what they cost."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from jobs.api.vendors.pai_dlc import job_filters
from jobs.dialects.document import Document
from jobs.models import Job, Visibility
from jobs.search import job_counts
from jobs.spec import RoleSpec
from jobs.states import State
from jobs.submission import JobTarget, submit
from quotas.accounts import tokens
from quotas.models import User
from tests.factories import make_job, make_quota, make_spec, make_workspace
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc
from tests.jobs.api.vendors.pai_dlc.test_job_creation import REQUEST


@pytest.fixture(autouse=True)
def _forget_pages() -> None:
    cache.clear()


def names(answer: dict[str, Any]) -> list[str]:
    return [job["DisplayName"] for job in answer["Jobs"]]


def listed(user: User, **query: Any) -> list[str]:
    return names(Dlc(user).get("jobs", **query))


def submitted(owner: User, name: str, **changes: Any) -> Job:
    text = json.dumps({**REQUEST, "DisplayName": name, **changes})
    return submit(owner, Document(text, "dlc"), place=JobTarget(workspace="vision")).job


def make_named(people: People, *job_names: str, **columns: Any) -> list[Job]:
    state = columns.pop("state", State.QUEUED)
    given = {"owner": people.owner, "quota": people.quota, **columns}
    return [make_job(state, **{**given, "name": name}) for name in job_names]


def test_list_jobs_answers_newest_first_with_total(people: People) -> None:
    make_named(people, "a", "b", "c")
    answer = Dlc(people.owner).get("jobs", PageSize=2)
    assert (names(answer), answer["TotalCount"]) == (["c", "b"], 3)
    assert listed(people.owner, Order="asc") == ["a", "b", "c"]


def test_large_total_is_counted_once_for_all_pages(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_counts, "LARGE", 2)
    began = timezone.now().replace(second=0)
    moments = iter((began, began + timedelta(seconds=59), began + timedelta(seconds=61)))
    monkeypatch.setattr(job_filters, "timezone", SimpleNamespace(now=lambda: next(moments)))
    make_named(people, "a", "b")
    assert Dlc(people.owner).get("jobs", PageSize=1)["TotalCount"] == 2
    make_named(people, "c")
    assert Dlc(people.owner).get("jobs", PageSize=1, PageNumber=2)["TotalCount"] == 2
    assert Dlc(people.owner).get("jobs", PageSize=1)["TotalCount"] == 3


def test_list_jobs_item_has_documented_types(people: People) -> None:
    submitted(people.owner, "a")
    item = Dlc(people.owner).get("jobs")["Jobs"][0]
    assert (item["NodeCount"], item["RequestGPU"], item["RequestMemory"]) == ("2", "0", "4Gi")
    assert item["RequestCPU"] == 2
    assert item["JobSpecs"][0]["PodCount"] == 2
    assert item["JobType"] == "TFJob"


@pytest.mark.parametrize("key", ["2026", "0", "-1", "团队", 'a"b', "a.b", "a[0]", "$", "a'b", "a\\b", "%s"])
def test_list_jobs_finds_a_tag_by_any_key(people: People, key: str) -> None:
    submitted(people.owner, "other", Settings={"Tags": {"z": "x"}})
    submitted(people.owner, "tagged", Settings={"Tags": {"a": "y", key: "x"}})
    assert names(Dlc(people.owner).get("jobs", Tags=json.dumps({key: "x"}))) == ["tagged"]
    assert names(Dlc(people.owner).get("jobs", Tags=json.dumps({key: "y"}))) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"DisplayName": "MNI"}, ["tf-mnist"]),
        ({"JobType": "PyTorchJob"}, ["torch"]),
        ({"JobType": "TFJob"}, ["tf-mnist"]),
        ({"JobType": "FlinkBatchJob"}, ["flink"]),
        ({"JobType": "pytorchjob"}, []),
        ({"Status": "Queuing"}, ["flink", "torch", "tf-mnist"]),
        ({"Status": "Running"}, []),
        ({"Tags": '{"team":"a b"}'}, ["torch"]),
        ({"Tags": '{"team":"a b","more":"x"}'}, []),
        ({"Tags": "{}"}, ["flink", "torch", "tf-mnist"]),
        ({"Caller": "local"}, ["torch"]),
        ({"BusinessUserId": "42"}, ["torch"]),
        ({"PipelineId": "42"}, []),
        ({"OversoldInfo": "AcceptQuotaOverSold"}, ["torch"]),
        ({"Accessibility": "PUBLIC"}, ["tf-mnist"]),
        ({"ResourceId": "default"}, ["flink", "torch", "tf-mnist"]),
        ({"ResourceId": "other"}, []),
        ({"ResourceIds": "other,default"}, ["flink", "torch", "tf-mnist"]),
        ({"ResourceQuotaName": "Default"}, ["flink", "torch", "tf-mnist"]),
        ({"Username": "olga", "ShowOwn": "True"}, ["flink", "torch", "tf-mnist"]),
        ({"UserIdForFilter": "mei"}, []),
        ({"WorkspaceId": "vision"}, ["flink", "torch", "tf-mnist"]),
        ({"WorkspaceId": "speech"}, []),
        ({"SortBy": "DisplayName", "Order": "asc"}, ["flink", "tf-mnist", "torch"]),
        ({"SortBy": "JobType", "Order": "asc", "PageSize": 2}, ["torch", "tf-mnist"]),
        ({"SortBy": "Status", "PageNumber": 2, "PageSize": 2}, ["tf-mnist"]),
        ({"SortBy": "GmtFinishTime"}, ["flink", "torch", "tf-mnist"]),
    ],
)
def test_list_jobs_filters_and_sorts(people: People, query: dict[str, Any], expected: list[str]) -> None:
    submitted(people.owner, "tf-mnist", Accessibility="PUBLIC")
    settings = {
        "Tags": {"team": "a b"},
        "Caller": "local",
        "BusinessUserId": "42",
        "OversoldType": "AcceptQuotaOverSold",
    }
    submitted(people.owner, "torch", JobType="PyTorchJob", Settings=settings)
    submitted(people.owner, "flink", JobType="FlinkBatchJob")
    answer = Dlc(people.owner).get("jobs", **query)
    assert names(answer) == expected
    if "PageSize" not in query:
        assert answer["TotalCount"] == len(expected)


def test_list_jobs_by_id_finds_old_ones_too(people: People) -> None:
    old, other, _third = make_named(people, "old", "other", "third")
    Job.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=30))
    assert listed(people.owner, JobId=f"dlc{old.public_id}") == ["old"]
    assert listed(people.owner, JobIds=f"dlc{old.public_id}, dlc{other.public_id}") == ["other", "old"]
    both = {"JobId": f"dlc{old.public_id}", "JobIds": f"dlc{other.public_id}"}
    assert listed(people.owner, **both) == ["old"]
    assert listed(people.owner, JobId="absent") == []


def test_list_jobs_shows_the_last_seven_days_by_default(people: People) -> None:
    for name, days in (("now", 0), ("week", 6), ("older", 8), ("oldest", 16)):
        (job,) = make_named(people, name)
        Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(days=days))
    assert listed(people.owner) == ["now", "week"]
    moment = (timezone.now() - timedelta(days=7)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert listed(people.owner, EndTime=moment) == ["older"]
    assert listed(people.owner, StartTime="2020-01-01T00:00:00Z", EndTime=moment) == ["older", "oldest"]
    assert listed(people.owner, StartTime="2020-01-01T00:00:00Z") == ["now", "week", "older", "oldest"]


def test_list_jobs_from_all_workspaces_with_own_ones(people: People) -> None:
    other = make_quota(make_workspace("nlp"), people.quota.cluster, "q")
    make_named(people, "here")
    make_job(owner=people.owner, quota=other, name="there")
    assert listed(people.owner, WorkspaceId="vision") == ["here"]
    both = {"WorkspaceId": "vision", "FromAllWorkspaces": "True"}
    assert listed(people.owner, **both) == ["here"]
    assert listed(people.owner, **both, ShowOwn="True") == ["there", "here"]
    assert listed(people.owner) == ["there", "here"]


def test_list_jobs_shows_only_jobs_of_own_workspaces(people: People) -> None:
    make_named(people, "a")
    assert listed(people.stranger) == []
    assert listed(people.stranger, WorkspaceId="vision") == []
    assert listed(people.admin) == ["a"]
    seen = Dlc(people.member).get("jobs")["Jobs"][0]
    assert seen["Status"] == "Queuing"
    assert "UserCommand" not in seen
    assert Dlc(people.manager).get("jobs")["Jobs"][0]["UserCommand"] == "echo hello"


def test_list_jobs_does_not_search_files_that_may_not_be_read(people: People) -> None:
    job = submitted(people.owner, "secret", Settings={"Tags": {"team": "x"}, "Caller": "c"})
    for query in ({"Tags": '{"team":"x"}'}, {"Caller": "c"}, {"JobType": "TFJob"}):
        assert listed(people.member, **query) == []
        assert listed(people.manager, **query) == ["secret"]
        assert names(Dlc(people.manager, {"read"}).get("jobs", **query)) == []
    Job.objects.filter(pk=job.pk).update(visibility=Visibility.PUBLIC)
    assert listed(people.member, Tags='{"team":"x"}') == ["secret"]


def test_list_jobs_pages_have_each_job_once_while_others_come(people: People) -> None:
    make_named(people, *(f"job{number}" for number in range(7)))
    dlc, seen = Dlc(people.owner), []
    for number in range(1, 5):
        seen += names(dlc.get("jobs", PageNumber=number, PageSize=2))
        make_named(people, f"later{number}")
    assert seen == ["job6", "job5", "job4", "job3", "job2", "job1", "job0"]


def test_list_jobs_page_without_those_before_is_counted_off(people: People) -> None:
    make_named(people, *(f"job{number}" for number in range(7)))
    assert listed(people.owner, PageNumber=3, PageSize=2) == ["job2", "job1"]
    assert listed(people.owner, PageNumber=3, PageSize=2, Order="asc") == ["job4", "job5"]
    assert listed(people.owner, PageNumber=9, PageSize=2) == []


def test_list_jobs_next_page_skips_no_rows(
    people: People, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    make_named(people, *(f"job{number}" for number in range(6)))
    dlc = Dlc(people.owner)
    dlc.get("jobs", PageNumber=1, PageSize=2)
    with django_assert_num_queries(8) as queries:
        assert names(dlc.get("jobs", PageNumber=2, PageSize=2)) == ["job3", "job2"]
    assert not any("OFFSET" in query["sql"] for query in queries.captured_queries)


def test_list_jobs_costs_the_same_for_every_page(
    people: People, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    spec = make_spec(roles=(RoleSpec(name="main", command="c", replicas=3),))
    for number in range(30):
        state = (State.RUNNING, State.FAILED, State.QUEUED)[number % 3]
        make_job(state, owner=people.owner, quota=people.quota, spec=spec)
    dlc = Dlc(people.manager)
    dlc.get("jobs", PageSize=3)
    for size in (3, 10, 30):
        with django_assert_num_queries(8):
            assert len(dlc.get("jobs", PageNumber=1, PageSize=size)["Jobs"]) == size


@pytest.mark.parametrize(
    "query",
    [
        {"PageNumber": 0},
        {"PageNumber": "x"},
        {"PageSize": 101},
        {"PageSize": -1},
        {"SortBy": "UserId"},
        {"Order": "up"},
        {"Status": "running"},
        {"Tags": "["},
        {"Tags": '{"a": 1}'},
        {"Tags": "[" * 5000},
        {"StartTime": "yesterday"},
        {"ShowOwn": "1"},
    ],
)
def test_list_jobs_refuses_wrong_values(people: People, query: dict[str, Any]) -> None:
    answer = Dlc(people.owner).send("get", "jobs", **query)
    assert (answer.status_code, json.loads(answer.content)["Code"]) == (400, "InvalidParameter")
    assert next(iter(query)) in json.loads(answer.content)["Message"]


def test_list_jobs_names_filters_that_are_not_supported(people: People) -> None:
    answer = Dlc(people.owner).send("get", "jobs", ImageSearch="x", UserCommandSearch="y")
    found = json.loads(answer.content)
    assert (answer.status_code, found["Code"]) == (400, "UnsupportedOperation")
    assert "ImageSearch" in found["Message"]
    assert "UserCommandSearch" in found["Message"]


def test_list_jobs_needs_scope_read(people: People) -> None:
    assert Dlc(people.owner, set(tokens.SCOPES) - {"read"}).refusal("get", "jobs") == (403, "NoPermission")
