"""Quotas and resources over the workspace service."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from quotas.models import Kind, Quota, Source
from tests.factories import make_quota
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_workspace.conftest import NOT_FOUND, client, ids

Queries = Callable[[int], AbstractContextManager[object]]

QUOTAS = "/api/v1/quotas"
RESOURCES = "/api/v1/resources"


def test_quotas_are_those_of_the_persons_workspaces(people: People) -> None:
    Quota.objects.update(cpu_milli=1500, memory_mib=4096, gpus=2)
    for user in (people.owner, people.member, people.manager, people.admin):
        (found,) = client(user).call("GET", QUOTAS)["Quotas"]
        assert (found["Id"], found["Mode"], found["QuotaType"]) == ("default", "isolate", "PAI")
        values = {each["Name"]: each["Value"] for each in found["Specs"]}
        assert values == {"cpu": "1.5", "memory": "4", "gpu": "2"}
    assert client(people.stranger).call("GET", QUOTAS)["Quotas"] == []


def test_quotas_of_one_name_have_long_ids(people: People) -> None:
    make_quota(people.quota.workspace, slug="default", source=Source.PUBLIC)
    found = client(people.owner).call("GET", QUOTAS)["Quotas"]
    assert "vision/local/default" in {each["Id"] for each in found}
    assert {each["Mode"] for each in found} == {"isolate", "share"}


def test_quotas_are_filtered_by_name(people: People) -> None:
    make_quota(people.quota.workspace, slug="spare", name="Spare time")
    caller = client(people.owner)
    assert ids(caller.call("GET", QUOTAS, Name="spare"), "Quotas", "Id") == ["spare"]
    assert ids(caller.call("GET", QUOTAS, Name="none"), "Quotas", "Id") == []


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["default", "lingjun"]),
        ({"WorkspaceId": "vision"}, ["default", "lingjun"]),
        ({"ProductTypes": "DLC"}, ["default", "lingjun"]),
        ({"ProductTypes": "MaxCompute"}, []),
        ({"ResourceTypes": "Lingjun"}, ["lingjun"]),
        ({"QuotaIds": "default,other"}, ["default"]),
        ({"ResourceName": "lingjun"}, ["lingjun"]),
        ({"GroupName": "speech"}, []),
    ],
)
def test_resources_are_filtered(people: People, query: dict[str, str], names: list[str]) -> None:
    Quota.objects.update(name="a")
    make_quota(people.quota.workspace, slug="lingjun", name="b", kind=Kind.LINGJUN)
    assert ids(client(people.owner).call("GET", RESOURCES, **query), "Resources", "Name") == names


def test_resources_of_other_workspaces_are_not_found(people: People) -> None:
    stranger = client(people.stranger)
    assert stranger.call("GET", RESOURCES)["Resources"] == []
    assert stranger.refusal("GET", RESOURCES, WorkspaceId="vision") == NOT_FOUND
    (found,) = client(people.member).call("GET", RESOURCES, PageSize=1)["Resources"]
    assert (found["WorkspaceId"], found["Quotas"][0]["Id"]) == ("vision", "default")


def test_quota_and_resource_lists_take_few_queries(
    people: People, django_assert_max_num_queries: Queries
) -> None:
    for number in range(20):
        make_quota(people.quota.workspace, slug=f"q{number}")
    caller = client(people.owner)
    caller.call("GET", QUOTAS)
    for address in (QUOTAS, RESOURCES):
        with django_assert_max_num_queries(8):
            caller.call("GET", address)
