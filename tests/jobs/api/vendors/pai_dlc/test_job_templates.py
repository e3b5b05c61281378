"""Job templates of PAI-DLC, by owner, members, strangers and admins."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from jobs.models import Template
from quotas.models import User
from tests.factories import TEMPLATE_FILE, make_template
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc

PATH = "jobtemplates"
NEW: dict[str, Any] = {"TemplateName": "Training", "Content": TEMPLATE_FILE, "WorkspaceId": "vision"}


def create(user: User, **changes: Any) -> str:
    return str(Dlc(user).post(PATH, {**NEW, **changes})["TemplateId"])


def ids(answer: dict[str, Any]) -> list[str]:
    return [each["TemplateId"] for each in answer["JobTemplates"]]


def test_template_of_member_is_their_own(people: People) -> None:
    made = Dlc(people.owner).post(PATH, {**NEW, "Description": "d", "Metadata": {"team": "a"}})
    row = Template.objects.get(public_id=made["TemplateId"])
    assert (row.owner, row.workspace, row.name, row.description) == (people.owner, None, "Training", "d")
    assert made["Version"] == made["DefaultVersion"] == 1
    assert made["Metadata"] == {"team": "a"}
    assert made["WorkspaceId"] == ""
    assert made["UserId"] == "olga"
    assert made["GmtCreateTime"].endswith("Z")


def test_template_of_manager_is_the_workspaces(people: People) -> None:
    made = create(people.manager)
    assert Template.objects.get(public_id=made).workspace == people.quota.workspace


def test_template_of_manager_without_admin_scope_is_their_own(people: People) -> None:
    dlc = Dlc(people.manager, ["read", "submit"])
    made = dlc.post(PATH, NEW)["TemplateId"]
    assert Template.objects.get(public_id=made).workspace is None


def test_template_list_shows_workspace_and_own_ones(people: People) -> None:
    shared, own = create(people.manager, TemplateName="Shared"), create(people.owner, TemplateName="Own")
    make_template(people.stranger, name="Elsewhere")
    found = {
        user.username: set(ids(Dlc(user).get(PATH, WorkspaceId="vision")))
        for user in (people.owner, people.member, people.manager, people.admin)
    }
    assert found == {"olga": {shared, own}, "mei": {shared}, "otto": {shared}, "root": {shared}}
    assert Dlc(people.stranger).refusal("get", PATH, WorkspaceId="vision") == (404, "ResourceNotFound")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"SortBy": "TemplateName", "Order": "asc"}, ["A", "B", "C"]),
        ({"SortBy": "TemplateName", "Order": "desc", "PageSize": 2}, ["C", "B"]),
        ({"SortBy": "TemplateName", "Order": "asc", "PageSize": 2, "PageNumber": 2}, ["C"]),
        ({"TemplateName": "b"}, ["B"]),
        ({"UserId": "mei"}, []),
    ],
)
def test_template_list_is_filtered_sorted_and_paged(
    people: People, query: dict[str, Any], expected: list[str]
) -> None:
    for name in ("B", "A", "C"):
        make_template(people.owner, name=name)
    answer = Dlc(people.owner).get(PATH, WorkspaceId="vision", **query)
    assert [each["TemplateName"] for each in answer["JobTemplates"]] == expected


def test_template_list_takes_a_constant_number_of_queries(
    people: People, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for index in range(5):
        make_template(people.owner, name=f"t{index}")
    dlc = Dlc(people.owner)
    with django_assert_max_num_queries(6):
        assert dlc.get(PATH, WorkspaceId="vision")["TotalCount"] == 5


def test_template_versions_are_added_and_read(people: People) -> None:
    dlc = Dlc(people.owner)
    name = f"{PATH}/{create(people.owner, Constraints={'$.UserCommand': 'locked'})}"
    changed = json.dumps({**json.loads(TEMPLATE_FILE), "UserCommand": "true"})
    second = dlc.put(name, {"Content": changed})
    assert (second["Version"], second["VersionCreated"], second["DefaultVersion"]) == (2, True, 1)
    third = dlc.put(name, {"Content": changed, "SetAsDefault": True})
    assert (third["Version"], third["DefaultVersion"]) == (3, 3)
    renamed = dlc.put(name, {"TemplateName": "Renamed", "Description": "about"})
    assert (renamed["VersionCreated"], renamed["Version"]) == (False, 3)
    assert dlc.put(f"{name}/defaultversion", {"Version": 1})["DefaultVersion"] == 1
    first = dlc.get(name)
    assert [each["Version"] for each in first["Versions"]] == [1]
    assert first["Versions"][0]["Constraints"] == {"$.UserCommand": "locked"}
    assert json.loads(first["Versions"][0]["Content"]) == json.loads(TEMPLATE_FILE)
    assert (first["TemplateName"], first["Description"]) == ("Renamed", "about")
    assert [each["Version"] for each in dlc.get(name, Version="all")["Versions"]] == [3, 2, 1]
    assert dlc.get(name, Version="2")["Versions"][0]["CreatedBy"] == "olga"
    assert dlc.refusal("get", name, Version="9") == (404, "ResourceNotFound")
    assert dlc.refusal("put", f"{name}/defaultversion", {"Version": 9}) == (404, "ResourceNotFound")
    assert dlc.refusal("get", name, Version="x") == (400, "InvalidParameter")


def test_template_metadata_alone_makes_a_version(people: People) -> None:
    dlc, name = Dlc(people.owner), f"{PATH}/{create(people.owner)}"
    assert dlc.put(name, {"Metadata": {"team": "b"}, "SetAsDefault": True})["VersionCreated"]
    assert dlc.get(name)["Metadata"] == {"team": "b"}


def test_deleted_template_is_retired(people: People) -> None:
    made = create(people.owner)
    dlc = Dlc(people.owner)
    assert dlc.delete(f"{PATH}/{made}")["TemplateId"] == made
    assert Template.objects.get(public_id=made).retired_at is not None
    assert dlc.refusal("get", f"{PATH}/{made}") == (404, "ResourceNotFound")


@pytest.mark.parametrize(
    "body",
    [
        {"Content": "no JSON"},
        {"Content": "{}"},
        {"TemplateName": "n" * 81},
        {"TemplateName": " "},
        {"Constraints": {"$.UserCommand": "forbidden"}},
        {"Constraints": {"$.UserCommand": 1}},
        {"Constraints": {"$.NoSuchField": "locked"}},
        {"Metadata": {"opens": 5}},
        {"Content": None},
    ],
)
def test_template_with_wrong_values_is_refused(people: People, body: dict[str, Any]) -> None:
    assert Dlc(people.owner).refusal("post", PATH, {**NEW, **body}) == (400, "InvalidParameter")
    assert not Template.objects.exists()


def test_template_constraints_without_content_are_refused(people: People) -> None:
    name = f"{PATH}/{create(people.owner)}"
    body = {"Constraints": {"$.UserCommand": "locked"}}
    assert Dlc(people.owner).refusal("put", name, body) == (400, "InvalidParameter")


def test_too_many_templates_are_refused(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.submission.templates.MOST", 1)
    create(people.owner)
    assert Dlc(people.owner).refusal("post", PATH, NEW) == (400, "QuotaExceeded.JobTemplate")


CHANGES = [
    ("put", "", {"TemplateName": "x"}),
    ("put", "/defaultversion", {"Version": 1}),
    ("delete", "", None),
]


@pytest.mark.parametrize(("method", "suffix", "body"), CHANGES)
def test_own_template_is_hidden_from_others(people: People, method: str, suffix: str, body: Any) -> None:
    path = f"{PATH}/{create(people.owner)}"
    for user in (people.member, people.manager, people.stranger, people.admin):
        assert Dlc(user).refusal("get", path)[0] == 404
        assert Dlc(user).refusal(method, path + suffix, body)[0] == 404


@pytest.mark.parametrize(("method", "suffix", "body"), CHANGES)
def test_workspace_template_is_changed_by_managers_alone(
    people: People, method: str, suffix: str, body: Any
) -> None:
    path = f"{PATH}/{create(people.manager)}"
    assert Dlc(people.member).get(path)["TemplateName"] == "Training"
    assert Dlc(people.member).refusal(method, path + suffix, body) == (403, "NoPermission")
    assert Dlc(people.stranger).refusal(method, path + suffix, body) == (404, "ResourceNotFound")
    limited = Dlc(people.manager, ["read", "submit"])
    assert limited.refusal(method, path + suffix, body) == (403, "NoPermission")
    assert Dlc(people.admin).send(method, path + suffix, body).status_code == 200


def test_template_of_reader_is_refused(people: People) -> None:
    assert Dlc(people.owner, ["read"]).refusal("post", PATH, NEW) == (403, "NoPermission")
