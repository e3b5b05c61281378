"""ListEcsSpecs: the console's price list, or common instance types."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from jobs.form import sizes
from quotas.models import Node, Spec
from tests.factories import make_workspace
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_dlc.service_calls import Dlc

PATH = "ecsspecs"


def make_catalog(people: People) -> None:
    Spec.objects.create(name="cpu.large", cpu_milli=8000, memory_mib=16384)
    Spec.objects.create(name="cpu.small", cpu_milli=1000, memory_mib=2048)
    Spec.objects.create(name="gpu.small", cpu_milli=8000, memory_mib=32768, gpus={"A100": 1})
    Spec.objects.create(name="withdrawn", cpu_milli=1000, memory_mib=1024, offered=False)
    Spec.objects.create(name="ours", workspace=people.quota.workspace, cpu_milli=2000, memory_mib=4096)
    Spec.objects.create(name="theirs", workspace=make_workspace(), cpu_milli=2000, memory_mib=4096)


def names(answer: dict[str, Any]) -> list[str]:
    return [spec["InstanceType"] for spec in answer["EcsSpecs"]]


def test_specs_of_fresh_console_begin_with_the_smallest(people: People) -> None:
    answer = Dlc(people.owner).get(PATH, SortBy="Memory", Order="asc", PageSize=100)
    assert answer["TotalCount"] == len(answer["EcsSpecs"]) == len(sizes.INSTANCES)
    assert answer["EcsSpecs"][0] == {
        "InstanceType": "ecs.s6-c1m2.small",
        "AcceleratorType": "CPU",
        "Cpu": 1,
        "Memory": 2,
        "Gpu": 0,
        "GpuType": "",
        "IsAvailable": True,
        "ResourceType": "ECS",
        "PaymentTypes": [],
        "SupportedGPUDrivers": [],
    }
    assert answer["RequestId"]


def test_specs_of_price_list_replace_common_ones(people: People) -> None:
    make_catalog(people)
    answer = Dlc(people.owner).get(PATH, SortBy="Memory", Order="asc")
    assert names(answer) == ["cpu.small", "ours", "cpu.large", "gpu.small"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"AcceleratorType": "GPU"}, ["gpu.small"]),
        ({"AcceleratorType": "CPU", "SortBy": "CPU", "Order": "desc"}, ["cpu.large", "ours", "cpu.small"]),
        ({"InstanceTypes": "cpu.small, gpu.small", "SortBy": "GPU"}, ["gpu.small", "cpu.small"]),
        ({"ResourceType": "Lingjun"}, []),
        ({"ResourceType": "ECS", "PageNumber": 2, "PageSize": 3, "SortBy": "Memory"}, ["cpu.small"]),
        ({"Order": "asc", "PageSize": 1}, ["cpu.large"]),
    ],
)
def test_specs_are_filtered_sorted_and_paged(
    people: People, query: dict[str, Any], expected: list[str]
) -> None:
    make_catalog(people)
    assert names(Dlc(people.owner).get(PATH, **query)) == expected


def test_specs_of_a_workspace_are_listed_to_its_members_and_admins(people: People) -> None:
    make_catalog(people)
    shown = {
        user.username: {"ours", "theirs"} & set(names(Dlc(user).get(PATH)))
        for user in (people.owner, people.member, people.stranger, people.admin)
    }
    assert shown == {"olga": {"ours"}, "mei": {"ours"}, "sam": set(), "root": {"ours", "theirs"}}


def test_spec_that_fits_no_node_is_unavailable(people: People) -> None:
    make_catalog(people)
    Node.objects.create(cluster=people.quota.cluster, name="n", cpu_milli=2000, memory_mib=8192)
    answer = Dlc(people.owner).get(PATH)
    available = {each["InstanceType"]: each["IsAvailable"] for each in answer["EcsSpecs"]}
    assert available == {"cpu.large": False, "cpu.small": True, "gpu.small": False, "ours": True}


def test_specs_take_a_constant_number_of_queries(
    people: People, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    make_catalog(people)
    dlc = Dlc(people.owner)
    with django_assert_max_num_queries(6):
        dlc.get(PATH)
