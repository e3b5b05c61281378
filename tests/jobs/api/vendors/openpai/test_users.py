"""Users, groups, storages and virtual clusters."""

from __future__ import annotations

import pytest
from pytest_django import DjangoAssertNumQueries

from jobs.states import State
from quotas.models import Quota, Role
from tests.factories import make_cluster, make_job, make_membership, make_quota, make_user, make_workspace
from tests.jobs.api.conftest import People, body_of
from tests.jobs.api.vendors.openpai.conftest import PaiOf, error_of

pytestmark = pytest.mark.django_db

ALL = ("read", "submit", "stop", "exec", "admin")


@pytest.mark.parametrize("path", ["v1/user/olga", "v2/user/olga", "v2/users/olga"])
def test_user_sees_own_account(people: People, pai: PaiOf, path: str) -> None:
    assert body_of(pai(people.owner).get(path)) == {
        "username": "olga",
        "admin": False,
        "email": "",
        "virtualCluster": ["default"],
        "grouplist": ["vision"],
        "storageConfig": [],
        "extension": {},
    }


@pytest.mark.parametrize("path", ["v2/users", "v2/users/", "v2/users/mei", "v2/users/nobody"])
def test_user_sees_nobody_else(people: People, pai: PaiOf, path: str) -> None:
    for client in (pai(people.owner, ALL), pai(people.manager, ALL), pai(people.admin)):
        assert error_of(client.get(path), 403) == (
            "ForbiddenUserError",
            "Non-admin is not allow to do this operation.",
        )


def test_admin_sees_everybody(
    people: People, pai: PaiOf, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    viewer = make_user("vera")
    make_membership(viewer, people.quota.workspace, Role.VIEWER)
    client = pai(people.admin, ALL)
    with django_assert_max_num_queries(5):
        found = {user["username"]: user for user in body_of(client.get("v2/users/"))}
    assert set(found) == {"olga", "mei", "otto", "sam", "root", "vera"}
    assert (found["olga"]["virtualCluster"], found["vera"]["virtualCluster"]) == (["default"], [])
    assert body_of(client.get("v2/users/mei"))["username"] == "mei"
    assert error_of(client.get("v2/users/nobody"), 404) == ("NoUserError", "User nobody is not found.")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("post", "v2/users/"),
        ("put", "v2/users"),
        ("put", "v2/users/me"),
        ("delete", "v2/users/olga"),
        ("put", "v2/users/olga/password"),
        ("put", "v2/users/olga/virtualcluster"),
        ("put", "v2/users/olga/admin"),
        ("delete", "v2/users/olga/group"),
        ("post", "v2/groups"),
        ("delete", "v2/groups/vision"),
        ("put", "v1/virtual-clusters/default"),
        ("put", "v1/virtual-clusters/default/status"),
        ("delete", "v2/virtual-clusters/default"),
    ],
)
def test_accounts_and_quotas_are_not_changed(people: People, pai: PaiOf, method: str, path: str) -> None:
    assert error_of(getattr(pai(people.admin, ALL), method)(path, {}), 501)[0] == "NotImplementedError"
    assert error_of(getattr(pai(people.owner), method)(path, {}), 403)[0] == "ForbiddenUserError"
    assert error_of(getattr(pai(), method)(path, {}), 401)[0] == "UnauthorizedUserError"


def test_groups_are_own_workspaces(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    (group,) = body_of(client.get("v2/groups"))
    assert group["groupname"] == "vision"
    assert body_of(client.get("v2/group/vision")) == group
    members = body_of(client.get("v2/groups/vision/userlist"))
    assert {member["username"] for member in members} == {"olga", "mei", "otto"}
    for path in ("v2/groups/speech", "v2/groups/speech/userlist"):
        assert error_of(client.get(path), 404) == ("NoGroupError", "Group speech is not found.")


def test_storages_are_none(people: People, pai: PaiOf) -> None:
    client = pai(people.owner)
    assert body_of(client.get("v2/storages", default="true")) == []
    assert error_of(client.get("v2/storages/nfs"), 404)[0] == "NoStorageError"


# --- virtual clusters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_virtual_clusters_are_quotas_of_own_workspaces(people: People, pai: PaiOf, version: str) -> None:
    Quota.objects.update(gpus=8, cpu_milli=64_000, memory_mib=1024)
    make_quota(make_workspace("elsewhere"), make_cluster(), "secret")
    make_job(State.RUNNING, owner=people.member, quota=people.quota)
    make_job(State.QUEUED, owner=people.member, quota=people.quota)
    make_job(State.FAILED, owner=people.member, quota=people.quota)
    client = pai(people.owner)
    found = body_of(client.get(f"{version}/virtual-clusters"))
    assert set(found) == {"default"}
    cluster = found["default"]
    assert (cluster["numJobs"], cluster["numActiveJobs"], cluster["numPendingJobs"]) == (2, 1, 1)
    assert cluster["resourcesTotal"] == {"memory": 1024, "vCores": 64, "GPUs": 8, "cpu": 64, "gpu": 8}
    assert cluster["status"] == "RUNNING"
    assert body_of(client.get(f"{version}/virtual-clusters/default")) == cluster
    assert error_of(client.get(f"{version}/virtual-clusters/secret"), 404) == (
        "NoVirtualClusterError",
        "Virtual cluster secret is not found.",
    )


def test_virtual_clusters_with_one_short_name_are_told_apart(people: People, pai: PaiOf) -> None:
    other = make_workspace("audio", members={people.owner: Role.DEVELOPER})
    make_quota(other, people.quota.cluster, "default")
    client = pai(people.owner)
    found = body_of(client.get("v2/virtual-clusters"))
    assert set(found) == {"audio/local/default", "vision/local/default"}
    for name in found:
        assert body_of(client.get(f"v2/virtual-clusters/{name}"))["status"] == "RUNNING"
        assert body_of(client.get(f"v2/virtual-clusters/{name}/sku-types")) == {}
