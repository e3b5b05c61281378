"""Datasets over the workspace service."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from jobs.models import AssetUse, Dataset
from quotas.models import AuditEntry
from tests.factories import make_job
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_workspace.conftest import FORBIDDEN, INVALID, NOT_FOUND, client, ids
from tests.jobs.assets.conftest import make_dataset

Queries = Callable[[int], AbstractContextManager[object]]

ROOT = "/api/v1/datasets"
OF_SAMPLE: dict[str, Any] = {
    "WorkspaceId": "vision",
    "Name": "example-nas-data",
    "DataType": "COMMON",
    "DataSourceType": "NAS",
    "Property": "DIRECTORY",
    "Uri": "nas://***.cn-hangzhou/",
    "Accessibility": "PRIVATE",
    "SourceType": "USER",
    "Options": '{"mountPath": "/mnt/data/nas"}',
}


def test_dataset_of_sample_is_created_once_and_found(people: People) -> None:
    caller = client(people.manager)
    query = {"WorkspaceId": "vision", "Name": "example-nas-data", "Properties": "DIRECTORY"}
    assert caller.call("GET", ROOT, **query)["Datasets"] == []
    key = caller.call("POST", ROOT, OF_SAMPLE)["DatasetId"]
    (found,) = caller.call("GET", ROOT, **query)["Datasets"]
    assert found["DatasetId"] == key
    repeated = (
        "Name",
        "Uri",
        "DataType",
        "DataSourceType",
        "Property",
        "SourceType",
        "WorkspaceId",
        "Options",
    )
    assert {name: found[name] for name in repeated} == {name: OF_SAMPLE[name] for name in repeated}
    row = Dataset.objects.get()
    assert (row.mount_path, row.read_only, row.created_by) == ("/mnt/data/nas", False, people.manager)
    assert AuditEntry.objects.filter(actor=people.manager, object_repr="example-nas-data").exists()


def test_dataset_is_created_by_those_who_manage_the_workspace(people: People) -> None:
    for user in (people.owner, people.member):
        assert client(user).refusal("POST", ROOT, OF_SAMPLE) == FORBIDDEN
    assert client(people.stranger).refusal("POST", ROOT, OF_SAMPLE) == NOT_FOUND
    for user in (people.manager, people.admin):
        assert client(user).call("POST", ROOT, OF_SAMPLE)["DatasetId"].startswith("d-")


@pytest.mark.parametrize(
    "changes",
    [
        {"Uri": "oss://bucket/"},
        {"Uri": "nas://a/../b"},
        {"DataSourceType": "MAXCOMPUTE"},
        {"Options": "{"},
        {"Options": "[]"},
        {"Options": '{"mountPath": 7}'},
        {"Options": '{"mountPath": "relative"}'},
        {"Name": "x" * 201},
    ],
)
def test_wrong_dataset_is_refused(people: People, changes: dict[str, str]) -> None:
    assert client(people.manager).refusal("POST", ROOT, {**OF_SAMPLE, **changes}) == INVALID
    assert not Dataset.objects.exists()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["nas", "file", "all"]),
        ({"WorkspaceId": "vision"}, ["nas", "file"]),
        ({"Properties": "FILE"}, ["file"]),
        ({"Properties": "DIRECTORY,FILE"}, ["nas", "file", "all"]),
        ({"Properties": "OTHER"}, []),
        ({"DataSourceTypes": "OSS,NAS"}, ["nas", "file"]),
        ({"DataSourceTypes": "MAXCOMPUTE"}, []),
        ({"SourceTypes": "PAI_PUBLIC_DATASET"}, ["all"]),
        ({"SourceTypes": "USER"}, ["nas", "file"]),
        ({"SourceTypes": "ITAG"}, []),
        ({"DataTypes": "PIC"}, []),
        ({"DataTypes": "COMMON,PIC"}, ["nas", "file", "all"]),
        ({"Label": "a=b"}, []),
        ({"SourceId": "x"}, []),
        ({"Name": "A", "Order": "DESC"}, ["all", "nas"]),
    ],
)
def test_datasets_are_filtered_and_sorted(people: People, query: dict[str, str], names: list[str]) -> None:
    workspace = people.quota.workspace
    make_dataset(workspace, "nas://fs-1.cn-hangzhou/", name="nas", source="nas")
    make_dataset(workspace, "oss://bucket/file.tar", name="file", source="oss")
    make_dataset(None, "/data/sets", name="all")
    assert ids(client(people.owner).call("GET", ROOT, **query), "Datasets", "Name") == names


def test_datasets_are_those_that_the_person_may_use(people: People) -> None:
    row = make_dataset(people.quota.workspace)
    for user in (people.owner, people.member, people.manager, people.admin):
        assert client(user).call("GET", f"{ROOT}/{row.key}")["Uri"] == "/data/sets"
    stranger = client(people.stranger)
    assert stranger.call("GET", ROOT)["Datasets"] == []
    assert stranger.refusal("GET", f"{ROOT}/{row.key}") == NOT_FOUND


def test_dataset_answers_never_have_its_password(people: People) -> None:
    row = make_dataset(people.quota.workspace, "s3://sets/x", source="s3", username="AK")
    row.encrypt("canary")
    row.save()
    for address in (ROOT, f"{ROOT}/{row.key}"):
        assert b"canary" not in client(people.manager).send("GET", address).content


def test_dataset_list_takes_few_queries(people: People, django_assert_max_num_queries: Queries) -> None:
    for number in range(20):
        make_dataset(people.quota.workspace, name=str(number), created_by=people.owner)
    caller = client(people.owner)
    caller.call("GET", ROOT)
    with django_assert_max_num_queries(10):
        assert len(caller.call("GET", ROOT, PageSize=100)["Datasets"]) == 20


def test_dataset_is_updated_by_those_who_manage_it(people: People) -> None:
    row = make_dataset(people.quota.workspace, description="Before")
    body = {"Name": "coco", "Options": json.dumps({"mountPath": "/mnt/coco", "threads": 4})}
    for user in (people.owner, people.member):
        assert client(user).refusal("PUT", f"{ROOT}/{row.key}", body) == FORBIDDEN
    assert client(people.stranger).refusal("PUT", f"{ROOT}/{row.key}", body) == NOT_FOUND
    client(people.manager).call("PUT", f"{ROOT}/{row.key}", body)
    row.refresh_from_db()
    assert (row.name, row.description, row.mount_path) == ("coco", "Before", "/mnt/coco")
    assert row.options == {"threads": "4"}
    client(people.admin).call("PUT", f"{ROOT}/{row.key}", {"Description": "After"})
    row.refresh_from_db()
    assert (row.name, row.description, row.options) == ("coco", "After", {"threads": "4"})


def test_dataset_is_deleted_by_those_who_manage_it(people: People) -> None:
    row = make_dataset(people.quota.workspace)
    for user in (people.owner, people.member):
        assert client(user).refusal("DELETE", f"{ROOT}/{row.key}") == FORBIDDEN
    assert client(people.stranger).refusal("DELETE", f"{ROOT}/{row.key}") == NOT_FOUND
    client(people.manager).call("DELETE", f"{ROOT}/{row.key}")
    assert not Dataset.objects.exists()
    assert client(people.admin).refusal("DELETE", f"{ROOT}/{row.key}") == NOT_FOUND


def test_used_dataset_is_retired(people: People) -> None:
    row = make_dataset(people.quota.workspace)
    AssetUse.objects.create(
        job=make_job(owner=people.owner, quota=people.quota), kind="datasets", key=row.key
    )
    client(people.admin).call("DELETE", f"{ROOT}/{row.key}")
    assert Dataset.objects.get().is_retired
    assert client(people.manager).call("GET", ROOT)["Datasets"] == []


def test_dataset_is_published_without_effect(people: People) -> None:
    row = make_dataset(people.quota.workspace)
    client(people.manager).call("PUT", f"{ROOT}/{row.key}/publish")
    assert client(people.member).refusal("PUT", f"{ROOT}/{row.key}/publish") == FORBIDDEN
    assert client(people.stranger).refusal("PUT", f"{ROOT}/{row.key}/publish") == NOT_FOUND
    assert not Dataset.objects.get().is_public
