"""Resource pools and queues."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.states import State
from quotas.models import Cluster, Node, Role
from tests.factories import make_cluster, make_job, make_quota, make_workspace
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.aihc.conftest import Aihc, as_user, read, refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(people: People) -> Cluster:
    """The people's cluster with one machine; there is another one, on which they have no quota."""
    cluster = people.quota.cluster
    Node.objects.create(cluster=cluster, name="n1", cpu_milli=8000, memory_mib=1024, gpus={"A100": 8})
    make_cluster("foreign")
    return cluster


def pools(api: Aihc, **query: Any) -> list[str]:
    answer = read(api.v2("DescribeResourcePools", resourcePoolType="common", **query))
    assert answer["totalCount"] >= len(answer["resourcePools"])
    return [pool["resourcePoolId"] for pool in answer["resourcePools"]]


@pytest.mark.usefixtures("cluster")
def test_resource_pools_are_the_clusters_of_the_person(owner: Aihc, people: People) -> None:
    assert pools(owner) == ["local"]
    assert pools(as_user(people.stranger)) != ["local"]
    assert {"local", "foreign"} <= set(pools(as_user(people.admin)))


@pytest.mark.usefixtures("cluster")
def test_resource_pools_are_searched_ordered_and_paged(people: People) -> None:
    admin = as_user(people.admin)

    assert pools(admin, keyword="LOC") == ["local"]
    assert pools(admin, keyword="oreig", keywordType="resourcePoolId") == ["foreign"]
    assert pools(admin, order="DESC") == list(reversed(pools(admin)))
    assert pools(admin, pageSize=1, pageNumber=2) == pools(admin)[1:2]
    assert read(admin.v2("DescribeResourcePools", resourcePoolType="dedicatedV2"))["resourcePools"] == []


@pytest.mark.usefixtures("cluster")
def test_resource_pool_is_flat(owner: Aihc) -> None:
    found = read(owner.v2("DescribeResourcePool", resourcePoolId="local"))

    assert (found["resourcePoolId"], found["type"], found["phase"], found["nodeNum"]) == (
        "local",
        "common",
        "running",
        1,
    )
    assert "metadata" not in found


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "action", ["DescribeResourcePool", "DescribeResourcePoolConfiguration", "DescribeQueues"]
)
def test_foreign_resource_pool_is_not_found(owner: Aihc, action: str) -> None:
    read(owner.v2(action, resourcePoolId="local"))
    refused(owner.v2(action, resourcePoolId="foreign"), 404, "ResourceNotFound")
    refused(owner.v2(action), 400, "InvalidParam")


@pytest.mark.usefixtures("cluster")
def test_overview_counts_nodes_and_accelerators(owner: Aihc) -> None:
    (found,) = read(owner.v2("DescribeResourcePoolOverview"))["resourcePoolsStatisticWithType"]

    assert found["nodesStatistic"] == {"totalCount": 1}
    assert found["acceleratorsStatistic"]["capacity"] == 8
    assert [each["resourceType"] for each in found["resourcesStatistic"]] == ["CPU", "Memory"]
    assert [pool["resourcePoolId"] for pool in found["resourcePoolStatistics"]] == ["local"]


def test_queues_have_limits_and_jobs(owner: Aihc, people: People) -> None:
    quota = make_quota(
        people.quota.workspace, people.quota.cluster, "gpus", gpus=8, cpu_milli=4000, parent=people.quota
    )
    make_job(State.RUNNING, owner=people.owner, quota=quota)
    make_job(owner=people.owner, quota=quota)

    found = read(owner.v2("DescribeQueues", resourcePoolId="local"))

    queues = {queue["queueId"]: queue for queue in found["queues"]}
    assert set(queues) == {"default", "gpus"}
    queue = queues["gpus"]
    assert (queue["runningJobs"], queue["pendingJobs"], queue["parentQueue"]) == (1, 1, "default")
    assert queue["capability"]["milliCPUcores"] == "4000"
    assert queue["capability"]["acceleratorCardList"] == [
        {"acceleratorType": "nvidia.com/gpu", "acceleratorCount": "8"}
    ]
    assert read(owner.v2("DescribeQueue", queueId="gpus"))["queueName"] == "gpus"
    assert [
        each["queueId"]
        for each in read(owner.v2("DescribeQueues", resourcePoolId="local", keyword="GP"))["queues"]
    ] == ["gpus"]


def test_queues_of_one_name_have_addresses(owner: Aihc, people: People) -> None:
    other = make_workspace("robots", members={people.owner: Role.DEVELOPER})
    make_quota(other, people.quota.cluster, "default")

    found = read(owner.v2("DescribeQueues", resourcePoolId="local"))

    addresses = [queue["queueId"] for queue in found["queues"]]
    assert sorted(addresses) == ["robots/local/default", "vision/local/default"]
    assert read(owner.v2("DescribeQueue", queueId=addresses[0]))["queueId"] == addresses[0]


def test_queue_of_strangers_is_not_found(people: People) -> None:
    refused(as_user(people.stranger).v2("DescribeQueue", queueId="default"), 404, "ResourceNotFound")


def test_pools_and_queues_query_count_is_constant(owner: Aihc, people: People) -> None:
    def count(action: str, **query: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            read(owner.v2(action, **query))
        return len(queries)

    before: list[int] = []
    for batch in range(2):
        counts = [
            count("DescribeResourcePools", resourcePoolType="common"),
            count("DescribeQueues", resourcePoolId="local"),
            count("DescribeResourcePoolOverview"),
        ]
        counts = [
            count("DescribeResourcePools", resourcePoolType="common"),
            count("DescribeQueues", resourcePoolId="local"),
            count("DescribeResourcePoolOverview"),
        ]
        assert before in ([], counts)
        before = counts
        for number in range(5):
            cluster = make_cluster(f"more-{batch}-{number}")
            make_quota(people.quota.workspace, cluster, "default")
            make_quota(people.quota.workspace, people.quota.cluster, f"more-{batch}-{number}")
            Node.objects.create(cluster=cluster, name="n", cpu_milli=1)
    assert max(before) <= 9
