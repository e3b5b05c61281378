"""Images over the workspace service."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from jobs.assets.official_images import OFFICIAL_IMAGES, add_official_images
from jobs.models import AssetUse, Image
from quotas.models import AuditEntry
from tests.factories import make_job
from tests.jobs.api.conftest import People
from tests.jobs.api.vendors.pai_workspace.conftest import FORBIDDEN, INVALID, NOT_FOUND, client, ids
from tests.jobs.assets.conftest import make_image

Queries = Callable[[int], AbstractContextManager[object]]

ROOT = "/api/v1/images"
OF_SAMPLE = (
    "system.supported.dlc=true,system.framework=Tensorflow 1.15,system.pythonVersion=3.6,system.chipType=CPU"
)
NEW: dict[str, Any] = {
    "Name": "torch",
    "ImageUri": "registry.example.org/ml/torch:2.4",
    "WorkspaceId": "vision",
    "Accessibility": "PRIVATE",
    "Labels": [
        {"Key": "system.framework", "Value": "PyTorch 2.4"},
        {"Key": "system.chipType", "Value": "GPU"},
        {"Key": "team", "Value": "not stored"},
    ],
}


def test_labels_of_sample_find_an_official_image(people: People) -> None:
    add_official_images()
    (found,) = client(people.owner).call("GET", ROOT, Labels=OF_SAMPLE)["Images"]
    assert found["ImageUri"] == OFFICIAL_IMAGES[0].address
    assert (found["Accessibility"], found["WorkspaceId"]) == ("PUBLIC", "")
    assert {"Key": "system.framework", "Value": "Tensorflow 1.15"} in found["Labels"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["cpu", "gpu", "other"]),
        ({"Labels": "system.chipType=CPU"}, ["cpu"]),
        ({"Labels": "system.chipType=GPU"}, ["gpu"]),
        ({"Labels": "system.framework=PyTorch 2.4"}, ["gpu"]),
        ({"Labels": "system.framework=Ray"}, ["other"]),
        ({"Labels": "system.official=true"}, []),
        ({"Labels": "system.supported.dlc=false"}, []),
        ({"Labels": "team=vision"}, []),
        ({"Name": "PU"}, ["cpu", "gpu"]),
        ({"Query": "registry.example.org/ml"}, ["cpu", "gpu", "other"]),
        ({"UserId": "olga"}, ["cpu"]),
        ({"Accessibility": "PRIVATE"}, []),
        ({"WorkspaceId": "vision", "Order": "desc"}, ["other", "gpu", "cpu"]),
    ],
)
def test_images_are_filtered_and_sorted(people: People, query: dict[str, str], names: list[str]) -> None:
    workspace = people.quota.workspace
    make_image(workspace, name="cpu", accelerator="CPU", created_by=people.owner)
    make_image(workspace, name="gpu", accelerator="A100", framework="PyTorch", version="2.4")
    make_image(workspace, name="other", framework="Ray")
    assert ids(client(people.owner).call("GET", ROOT, **query), "Images", "Name") == names


def test_images_are_those_that_the_person_may_use(people: People) -> None:
    ours, public = make_image(people.quota.workspace, name="ours"), make_image(name="all")
    retired = make_image(people.quota.workspace, name="retired", retired_at="2026-01-01T00:00:00Z")
    for user in (people.owner, people.member, people.manager, people.admin):
        assert ids(client(user).call("GET", ROOT), "Images", "Name") == ["ours", "all"]
        assert client(user).call("GET", f"{ROOT}/{ours.key}")["Name"] == "ours"
    stranger = client(people.stranger)
    assert ids(stranger.call("GET", ROOT), "Images", "Name") == ["all"]
    assert stranger.refusal("GET", f"{ROOT}/{ours.key}") == NOT_FOUND
    assert stranger.refusal("GET", ROOT, WorkspaceId="vision") == NOT_FOUND
    assert client(people.admin).refusal("GET", f"{ROOT}/{retired.key}") == NOT_FOUND
    assert stranger.call("GET", f"{ROOT}/{public.key}", Verbose="False")["Labels"] == []


def test_malformed_labels_are_refused(people: People) -> None:
    assert client(people.owner).refusal("GET", ROOT, Labels="system.chipType") == INVALID


def test_image_list_takes_few_queries(people: People, django_assert_max_num_queries: Queries) -> None:
    for number in range(20):
        make_image(people.quota.workspace, name=str(number), created_by=people.owner)
    caller = client(people.owner)
    caller.call("GET", ROOT)
    with django_assert_max_num_queries(10):
        assert len(caller.call("GET", ROOT, PageSize=100)["Images"]) == 20


def test_image_is_added_by_those_who_manage_the_workspace(people: People) -> None:
    for user in (people.owner, people.member):
        assert client(user).refusal("POST", ROOT, NEW) == FORBIDDEN
    assert client(people.stranger).refusal("POST", ROOT, NEW) == NOT_FOUND
    for user in (people.manager, people.admin):
        row = Image.objects.get(key=client(user).call("POST", ROOT, NEW)["ImageId"])
        assert (row.workspace, row.created_by, row.official) == (people.quota.workspace, user, False)
        assert (row.framework, row.version, row.python, row.accelerator) == ("PyTorch", "2.4", "", "GPU")
        assert AuditEntry.objects.filter(actor=user, object_pk=str(row.pk), object_repr="torch").exists()


def test_image_without_workspace_is_added_to_the_default_one(people: People) -> None:
    body = {"Name": "torch", "ImageUri": "example.org/torch"}
    added = client(people.manager).call("POST", ROOT, body)
    assert Image.objects.get(key=added["ImageId"]).workspace == people.quota.workspace


def test_image_with_wrong_address_is_refused(people: People) -> None:
    assert client(people.manager).refusal("POST", ROOT, {**NEW, "ImageUri": "no image"}) == INVALID
    assert not Image.objects.exists()


def test_image_is_removed_by_those_who_manage_it(people: People) -> None:
    ours, public = make_image(people.quota.workspace), make_image(name="all")
    for user in (people.owner, people.member):
        assert client(user).refusal("DELETE", f"{ROOT}/{ours.key}") == FORBIDDEN
    assert client(people.stranger).refusal("DELETE", f"{ROOT}/{ours.key}") == NOT_FOUND
    assert client(people.manager).refusal("DELETE", f"{ROOT}/{public.key}") == FORBIDDEN
    client(people.manager).call("DELETE", f"{ROOT}/{ours.key}")
    client(people.admin).call("DELETE", f"{ROOT}/{public.key}")
    assert not Image.objects.exists()
    assert client(people.manager).refusal("DELETE", f"{ROOT}/{ours.key}") == NOT_FOUND


def test_used_image_is_retired(people: People) -> None:
    row = make_image(people.quota.workspace)
    AssetUse.objects.create(job=make_job(owner=people.owner, quota=people.quota), kind="images", key=row.key)
    client(people.manager).call("DELETE", f"{ROOT}/{row.key}")
    assert Image.objects.get().is_retired
    assert client(people.manager).refusal("DELETE", f"{ROOT}/{row.key}") == NOT_FOUND


def test_image_is_published_without_effect(people: People) -> None:
    row = make_image(people.quota.workspace)
    address = f"{ROOT}/{row.key}/publish"
    assert client(people.manager).call("PUT", address)["ImageId"] == row.key
    assert client(people.owner).refusal("PUT", address) == FORBIDDEN
    assert client(people.stranger).refusal("PUT", address) == NOT_FOUND
    assert Image.objects.get().workspace == people.quota.workspace


def test_image_labels_are_those_of_visible_images(people: People) -> None:
    make_image(people.quota.workspace, framework="PyTorch", version="2.4")
    make_image(framework="Ray", python="3.12")
    keys = "system.framework, system.pythonVersion"
    found = client(people.owner).call("GET", "/api/v1/image/labels", LabelKeys=keys)["Labels"]
    assert [each["Value"] for each in found] == ["PyTorch 2.4", "Ray", "3.12"]
    found = client(people.stranger).call("GET", "/api/v1/image/labels", LabelKeys=keys)["Labels"]
    assert [each["Value"] for each in found] == ["Ray", "3.12"]
