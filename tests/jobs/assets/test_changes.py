"""Who sees and keeps assets, what may be entered about them, and what is never deleted."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.assets import changes, visibility
from jobs.assets.addresses import Wrong, check_git, check_place
from jobs.assets.forms import CodeForm, DatasetForm, ImageForm, VersionForm, VpcForm
from jobs.models import AssetKind, AssetUse, CodeSource, Dataset, Image
from quotas.models import AuditEntry, Role
from tests.factories import make_job, make_membership, make_user
from tests.jobs.assets.conftest import make_code, make_dataset, make_image
from tests.jobs.web.conftest import People

pytestmark = pytest.mark.django_db


def image_values(people: People, **changes: Any) -> dict[str, Any]:
    usual = {"name": "torch", "address": "r.example.org/torch:2", "workspace": people.quota.workspace.pk}
    return {**usual, **changes}


# --- sight -----------------------------------------------------------------------------------------------


def test_asset_is_visible_to_its_workspace_or_to_all(people: People) -> None:
    ours, all_ = make_image(people.quota.workspace, name="ours"), make_image(name="everybody's")
    told = {
        who: set(visibility.visible_to(getattr(people, who), AssetKind.IMAGE))
        for who in ("owner", "member", "manager", "stranger", "admin")
    }
    assert told == {
        "owner": {ours, all_},
        "member": {ours, all_},
        "manager": {ours, all_},
        "stranger": {all_},
        "admin": {ours, all_},
    }
    assert visibility.find(people.stranger, "images", ours.key) is None
    assert visibility.find(people.owner, "images", ours.key) == ours
    assert visibility.find(people.owner, "users", ours.key) is None


def test_asset_is_managed_by_the_permitted_roles_only(people: People) -> None:
    ours, all_ = make_dataset(people.quota.workspace), make_dataset()
    operator = make_user("olga")
    make_membership(operator, people.quota.workspace, Role.OPERATOR)
    keep = {
        user.username: (visibility.may_keep(user, ours), visibility.may_keep(user, all_))
        for user in (people.owner, people.manager, operator, people.stranger, people.admin)
    }
    assert keep == {
        "alice": (False, False),
        "carol": (True, False),
        "olga": (True, False),
        "mallory": (False, False),
        "root": (True, True),
    }


def test_asset_retired_is_visible_but_not_offered(people: People) -> None:
    code = make_code(people.quota.workspace)
    changes.retire(code)
    assert not visibility.choices(people.owner, people.quota.workspace, AssetKind.CODE).exists()
    assert visibility.find(people.owner, "code", code.key) == code
    changes.bring_back(code)
    assert visibility.choices(people.owner, people.quota.workspace, AssetKind.CODE).exists()


# --- what may be entered ---------------------------------------------------------------------------------


def test_asset_password_is_encrypted_and_survives_an_empty_field(people: People) -> None:
    form = ImageForm(people.manager, image_values(people, username="bot", password="canary-1"))
    assert form.is_valid(), form.errors
    image = form.save()
    assert image.reveal() == "canary-1"
    assert "canary" not in image.ciphertext
    assert "canary" not in ImageForm(people.manager, instance=image).as_p()
    changed = ImageForm(people.manager, image_values(people, username="bot", name="new"), instance=image)
    assert changed.is_valid(), changed.errors
    changed.save()
    assert Image.objects.get().reveal() == "canary-1"
    entries = list(AuditEntry.objects.filter(object_repr__in=["torch", "new"]))
    assert len(entries) == 2
    assert "canary" not in str([entry.changes for entry in entries])


@pytest.mark.parametrize("change", [{"address": "evil.example.org/x:1"}, {"username": "other"}])
def test_asset_password_is_required_again_after_an_address_change(
    people: People, change: dict[str, str]
) -> None:
    image = make_image(people.quota.workspace, username="bot")
    image.encrypt("canary-2")
    image.save()
    values = image_values(people, address=image.address, username="bot")
    form = ImageForm(people.manager, {**values, **change}, instance=image)
    assert list(form.errors) == ["password"]
    image.refresh_from_db()
    again = ImageForm(people.manager, {**values, **change, "password": "new"}, instance=image)
    assert again.is_valid()
    image.refresh_from_db()
    assert ImageForm(people.manager, {**values, **change, "forget": "on"}, instance=image).is_valid()


def test_dataset_password_blocks_a_version_on_another_host(people: People) -> None:
    dataset = make_dataset(people.quota.workspace, "https://a.example.org/x.tar", source="http")
    dataset.encrypt("canary-3")
    dataset.save()
    assert not VersionForm(dataset, {"uri": "https://b.example.org/x.tar"}).is_valid()
    assert VersionForm(dataset, {"uri": "https://a.example.org/y.tar"}).is_valid()


def test_asset_in_a_workspace_not_managed_is_refused(people: People) -> None:
    elsewhere = people.stranger.memberships.get().workspace
    for owner, workspace in (
        (people.manager, elsewhere.pk),
        (people.manager, ""),
        (people.owner, people.quota.workspace.pk),
    ):
        form = ImageForm(owner, image_values(people, workspace=workspace))
        assert "workspace" in form.errors
    assert ImageForm(people.admin, image_values(people, workspace="")).is_valid()


def test_dataset_for_all_is_read_only_and_has_a_first_version(people: People) -> None:
    values = {"name": "coco", "source": "oss", "uri": "oss://sets/coco/", "mount_path": "/mnt/coco"}
    form = DatasetForm(people.admin, {**values, "workspace": ""})
    assert form.is_valid(), form.errors
    dataset = form.save()
    assert dataset.read_only
    assert [(row.number, row.uri, row.is_default) for row in dataset.versions.all()] == [
        (1, "oss://sets/coco/", True)
    ]
    assert dataset.key.startswith("d-")


def test_dataset_versions_are_numbered_and_one_is_the_default(people: People) -> None:
    dataset = make_dataset(people.quota.workspace, "/data/one")
    second = changes.add_version(dataset, "/data/two", by=people.manager)
    assert (second.number, dataset.version_called("")) == (2, second)
    first = dataset.version_called("v1")
    assert first is not None
    assert first.uri == "/data/one"
    changes.choose_version(first)
    assert dataset.version_called("") == first
    assert [dataset.version_called(name) for name in ("3", "x", "v", "²")] == [None] * 4


def test_vpc_form_reads_lists_of_words_or_json(people: People) -> None:
    values = {"name": "net", "vpc_id": "vpc-1", "workspace": people.quota.workspace.pk}
    form = VpcForm(people.manager, {**values, "switches": "vsw-1, vsw-2", "security_groups": '["sg-1"]'})
    assert form.is_valid(), form.errors
    row = form.save()
    assert (row.switches, row.security_groups) == (["vsw-1", "vsw-2"], ["sg-1"])


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("https://git.example.org/a/b.git", ""),
        ("ssh://git@git.example.org/a/b.git", ""),
        ("http://git.example.org/a/b.git", "git_scheme"),
        ("file:///etc", "address"),
        ("ext::sh -c id", "chained"),
        ("https://me:pw@git.example.org/a", "login_in_address"),
        ("https://token@git.example.org/a", "login_in_address"),
        ("https://git.example.org/a/../b", "address"),
        ("https://git.example.org/a?x=1", "address"),
        ("https://git.example.org:x/a", "address"),
        ("--upload-pack=id", "address"),
        ("https://-o.example.org/a", "address"),
    ],
)
def test_git_address_check_gives_the_expected_code(uri: str, code: str) -> None:
    assert told(lambda: check_git(uri)) == code


@pytest.mark.parametrize(
    ("uri", "source", "code"),
    [
        ("oss://sets/imagenet/", "oss", ""),
        ("oss://sets.oss-cn-beijing.aliyuncs.com/imagenet/", "oss", ""),
        ("s3://sets/imagenet/", "s3", ""),
        ("https://example.org/x.tar?version=2", "http", ""),
        ("/data/sets", "host", ""),
        ("nas://1234.cn-beijing.nas.aliyuncs.com/", "nas", ""),
        ("oss://sets/x", "s3", "scheme"),
        ("simplecache::s3://sets/x", "s3", "chained"),
        ("s3://sets/x::file:///etc/passwd", "s3", "chained"),
        ("file:///etc", "s3", "address"),
        ("s3://key:secret@sets/x", "s3", "login_in_address"),
        ("s3://sets/../x", "s3", "address"),
        ("/data/../etc", "host", "address"),
        ("data", "nas", "folder"),
        ("s3://sets", "nas", "folder"),
        ("ftp://example.org/x", "http", "http_scheme"),
    ],
)
def test_data_place_check_gives_the_expected_code(uri: str, source: str, code: str) -> None:
    assert told(lambda: check_place(uri, source)) == code


def told(check: Any) -> str:
    try:
        check()
    except Wrong as wrong:
        return wrong.code
    return ""


def test_code_source_form_rejects_invalid_fields(people: People) -> None:
    values = {"name": "x", "repo": "https://git.example.org/x", "workspace": people.quota.workspace.pk}
    assert "repo" in CodeForm(people.manager, {**values, "mount_path": "/c", "repo": "ext::sh"}).errors
    assert "mount_path" in CodeForm(people.manager, {**values, "mount_path": "../x"}).errors
    assert "commit" in CodeForm(people.manager, {**values, "mount_path": "/c", "commit": "main"}).errors
    both = {**values, "mount_path": "/c", "password": "x", "own_secret": "GIT"}
    assert "own_secret" in CodeForm(people.manager, both).errors


# --- taking away -----------------------------------------------------------------------------------------


def test_asset_in_use_is_retired_and_unused_is_deleted(people: People) -> None:
    used, unused = make_dataset(people.quota.workspace), make_dataset(people.quota.workspace)
    job = make_job(owner=people.owner, quota=people.quota)
    AssetUse.objects.create(job=job, kind=AssetKind.DATASET, key=used.key, version=1)
    assert changes.take_away(unused)
    assert not changes.take_away(used)
    assert [(row, row.is_retired) for row in Dataset.objects.all()] == [(used, True)]
    assert changes.count_jobs(used) == 1


def test_asset_changes_are_in_the_audit_trail(people: People) -> None:
    code = make_code(people.quota.workspace)
    changes.retire(code)
    code.delete()
    entries = AuditEntry.objects.filter(object_repr="trainer").order_by("id")
    assert [entry.action for entry in entries] == ["create", "update", "delete"]
    assert {entry.workspace_id for entry in entries} == {people.quota.workspace.pk}
    assert not CodeSource.objects.exists()
