"""Workspaces and members over the workspace service."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from quotas.models import AuditEntry, Membership, Role, Workspace
from tests.factories import make_membership, make_user, make_workspace
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_workspace.conftest import FORBIDDEN, INVALID, NOT_FOUND, client, ids

Queries = Callable[[int], AbstractContextManager[object]]

ROOT = "/api/v1/workspaces"


def test_workspaces_of_sample_are_listed_without_a_name(people: People) -> None:
    query = {"PageNumber": 1, "PageSize": 1, "WorkspaceName": "", "ModuleList": "PAI"}
    answer = client(people.owner).call("GET", ROOT, **query)
    (found,) = answer["Workspaces"]
    assert answer["TotalCount"] == 1
    assert (found["WorkspaceId"], found["Status"], found["Creator"]) == ("vision", "ENABLED", "otto")
    assert (found["AdminNames"], found["IsDefault"]) == (["otto"], True)


def test_workspaces_are_those_of_the_person(people: People) -> None:
    expected = {
        people.owner: ["vision"],
        people.member: ["vision"],
        people.stranger: ["speech"],
        people.admin: ["vision", "speech"],
    }
    for user, slugs in expected.items():
        assert ids(client(user).call("GET", ROOT), "Workspaces", "WorkspaceId") == slugs


@pytest.mark.parametrize(
    ("query", "slugs"),
    [
        ({"WorkspaceName": "vis"}, ["vision"]),
        ({"WorkspaceName": "no such"}, []),
        ({"WorkspaceIds": "speech, vision"}, ["vision", "speech"]),
        ({"Status": "DISABLED"}, []),
        ({"Order": "DESC"}, ["speech", "vision"]),
        ({"SortBy": "WorkspaceName"}, ["speech", "vision"]),
    ],
)
def test_workspaces_are_filtered_and_sorted(people: People, query: dict[str, str], slugs: list[str]) -> None:
    Workspace.objects.filter(slug="vision").update(name="vision")
    Workspace.objects.filter(slug="speech").update(name="speech")
    answer = client(people.admin).call("GET", ROOT, **query)
    assert ids(answer, "Workspaces", "WorkspaceId") == slugs


def test_workspace_pages_have_the_total(people: People) -> None:
    for page, slugs in ((1, ["vision"]), (2, ["speech"]), (3, [])):
        answer = client(people.admin).call("GET", ROOT, PageNumber=page, PageSize=1)
        assert [each["WorkspaceId"] for each in answer["Workspaces"]] == slugs
        assert answer["TotalCount"] == 2


def test_workspace_list_takes_few_queries(people: People, django_assert_max_num_queries: Queries) -> None:
    for number in range(20):
        make_workspace(f"w{number}", members={people.owner: Role.ADMIN, make_user(): Role.ADMIN})
    caller = client(people.owner)
    caller.call("GET", ROOT)
    with django_assert_max_num_queries(12):
        assert len(caller.call("GET", ROOT, PageSize=100)["Workspaces"]) == 21


def test_workspace_is_read_by_its_members(people: People) -> None:
    for user in (people.owner, people.member, people.manager, people.admin):
        found = client(user).call("GET", f"{ROOT}/vision")
        assert (found["WorkspaceId"], found["Owner"]["UserName"]) == ("vision", "otto")
    assert client(people.stranger).refusal("GET", f"{ROOT}/vision") == NOT_FOUND


def test_default_workspace_is_that_of_jobs_that_name_none(people: People) -> None:
    assert client(people.owner).call("GET", "/api/v1/defaultWorkspaces")["WorkspaceId"] == "vision"
    assert client(people.stranger).call("GET", "/api/v1/defaultWorkspaces")["WorkspaceId"] == "speech"
    assert client(make_user("new")).refusal("GET", "/api/v1/defaultWorkspaces") == NOT_FOUND


def test_workspace_is_created_by_console_admins_alone(people: People) -> None:
    body = {
        "WorkspaceName": "robotics",
        "DisplayName": "Robotics",
        "Description": "Arms",
        "EnvTypes": ["prod"],
    }
    for user in (people.owner, people.member, people.manager, people.stranger):
        assert client(user).refusal("POST", ROOT, body) == FORBIDDEN
    assert client(people.admin).call("POST", ROOT, body)["WorkspaceId"] == "robotics"
    row = Workspace.objects.get(slug="robotics")
    assert (row.name, row.description) == ("Robotics", "Arms")
    assert Membership.objects.get(workspace=row).user == people.admin
    assert AuditEntry.objects.filter(actor=people.admin, object_repr="Robotics").exists()
    assert client(people.admin).refusal("POST", ROOT, body) == (409, "OperationConflict")


def test_workspace_with_wrong_name_is_refused(people: People) -> None:
    caller = client(people.admin)
    assert caller.refusal("POST", ROOT, {"WorkspaceName": "no slug!"}) == INVALID
    assert caller.refusal("POST", ROOT, {"WorkspaceName": "x" * 64}) == INVALID
    assert caller.refusal("POST", ROOT, {"DisplayName": "No name"}) == INVALID


def test_workspace_is_updated_by_console_admins_alone(people: People) -> None:
    body = {"DisplayName": "Eyes"}
    for user in (people.owner, people.member, people.manager):
        assert client(user).refusal("PUT", f"{ROOT}/vision", body) == FORBIDDEN
    assert client(people.stranger).refusal("PUT", f"{ROOT}/vision", body) == NOT_FOUND
    client(people.admin).call("PUT", f"{ROOT}/vision", body)
    assert Workspace.objects.get(slug="vision").name == "Eyes"
    assert client(people.admin).refusal("PUT", f"{ROOT}/vision", {"DisplayName": ""}) == INVALID


def test_members_are_listed_to_members(people: People) -> None:
    for user in (people.owner, people.member, people.manager, people.admin):
        answer = client(user).call("GET", f"{ROOT}/vision/members")
        assert ids(answer, "Members", "UserId") == ["olga", "mei", "otto"]
        assert answer["Members"][2]["Roles"] == ["PAI.WorkspaceAdmin"]
    assert client(people.stranger).refusal("GET", f"{ROOT}/vision/members") == NOT_FOUND


def test_members_are_filtered(people: People) -> None:
    caller = client(people.owner)
    for query, names in (
        ({"Roles": "PAI.WorkspaceAdmin"}, ["otto"]),
        ({"Roles": "PAI.AlgoDeveloper,PAI.WorkspaceAdmin"}, ["olga", "mei", "otto"]),
        ({"Roles": "PAI.LabelManager"}, []),
        ({"MemberName": "ott"}, ["otto"]),
    ):
        assert ids(caller.call("GET", f"{ROOT}/vision/members", **query), "Members", "UserId") == names


def test_member_list_takes_few_queries(people: People, django_assert_max_num_queries: Queries) -> None:
    for _number in range(20):
        make_membership(make_user(), people.quota.workspace)
    caller = client(people.owner)
    caller.call("GET", f"{ROOT}/vision/members")
    with django_assert_max_num_queries(10):
        assert len(caller.call("GET", f"{ROOT}/vision/members", PageSize=100)["Members"]) == 23


def test_member_is_read_by_id_of_user_or_member(people: People) -> None:
    caller = client(people.member)
    by_user = caller.call("GET", f"{ROOT}/vision/member", UserId="otto")
    by_member = caller.call("GET", f"{ROOT}/vision/member", MemberId=by_user["MemberId"])
    assert (by_user["MemberId"], by_member["UserId"]) == ("vision-otto", "otto")
    assert caller.refusal("GET", f"{ROOT}/vision/member", UserId="sam") == NOT_FOUND
    assert caller.refusal("GET", f"{ROOT}/vision/member") == NOT_FOUND
    assert client(people.stranger).refusal("GET", f"{ROOT}/vision/member", UserId="otto") == NOT_FOUND


def test_address_with_null_character_is_refused_in_shape(people: People) -> None:
    assert client(people.admin).refusal("GET", f"{ROOT}/%00")[0] == 400
