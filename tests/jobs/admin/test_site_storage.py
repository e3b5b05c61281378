"""Storage mappings in Django admin: tested when saved, keys in and never out, for console admins alone."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.test import Client

from jobs.assets import site_storage
from jobs.facilities import StorageMapping
from jobs.models import SiteStorage
from quotas import encryption
from quotas.models import AuditEntry, Cluster
from tests.factories import make_cluster, make_site_storage, make_user, make_workspace
from tests.jobs.backends.local.buckets import Store, bucket

__all__ = ["bucket"]

LIST = "/admin/jobs/sitestorage/"
TEST = {"jobs_sitestorage_save_and_test": "1"}


@pytest.fixture
def client(transactional_db: None) -> Client:
    made = Client()
    made.force_login(make_user(admin=True))
    return made


def sent(*clusters: tuple[int, str], **changes: Any) -> dict[str, Any]:
    """What a browser sends of the form."""
    rows = {
        f"clusters-{index}-{name}": value
        for index, (pk, folder) in enumerate(clusters)
        for name, value in (("cluster", pk), ("folder", folder))
    }
    return {
        "name": "nas",
        "address": "nas://",
        "all_workspaces": "on",
        "all_clusters": "on",
        "clusters-TOTAL_FORMS": len(clusters),
        "clusters-INITIAL_FORMS": 0,
        **rows,
        **changes,
    }


def problems(answer: Any) -> list[str]:
    if answer.status_code == 302:
        return []
    form, (formset,) = answer.context["adminform"].form, answer.context["inline_admin_formsets"]
    return [*form.errors, *map(str, formset.formset.non_form_errors())]


def test_folder_mapping_is_saved_and_tested_with_those_of_clusters(client: Client, tmp_path: Path) -> None:
    cluster, (here, gone) = make_cluster(), (tmp_path / "here", tmp_path / "gone")
    here.mkdir()
    values = sent((cluster.pk, str(gone)), folder=str(here), **TEST)
    assert TEST.keys() <= set(re.findall(r'name="(\w+)"', client.get(f"{LIST}add/").content.decode()))
    answer = client.post(f"{LIST}add/", values)
    row = SiteStorage.objects.get()
    assert answer["Location"] == f"{LIST}{row.pk}/change/", problems(answer)
    assert [(each["place"], each["code"]) for each in row.test_results] == [
        (str(here), "writable"),
        (str(gone), "missing"),
    ]
    page = client.get(answer["Location"]).content.decode()
    assert "There is no such folder on the console" in page
    assert not list(here.iterdir()), "a test leaves nothing"
    mappings = site_storage.find_mappings(cluster.pk, make_workspace().pk)
    assert mappings["nas://"].folder == str(gone)
    assert site_storage.find_mappings(make_cluster().pk, 0)["nas://"].folder == str(here)


def test_bucket_mapping_is_listed_with_its_key_which_is_never_shown(client: Client, bucket: Store) -> None:
    bucket.put_at("in/one", "one\n")
    values = {"bucket": "s3://sets/in", "endpoint": bucket.endpoint, "access_key": "AKIATEST"}
    values |= {"secret_key": "s3cretkey", **TEST}
    answer = client.post(f"{LIST}add/", sent(**values))
    row = SiteStorage.objects.get()
    assert [each["code"] for each in row.test_results] == ["listed"], row.test_results
    page = client.get(answer["Location"]).content.decode()
    assert "s3cretkey" not in page
    assert row.ciphertext not in page
    assert row.reveal() == "s3cretkey"
    assert "s3cretkey" not in str(AuditEntry.objects.values_list("changes"))
    moved = sent(**{**values, "endpoint": "https://evil.example.org", "secret_key": ""})
    assert problems(client.post(f"{LIST}{row.pk}/change/", moved)) == ["secret_key"]


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"folder": ""}, "folder"),
        ({"folder": "data"}, "folder"),
        ({"folder": "/data/../etc"}, "folder"),
        ({"bucket": "s3://sets"}, "folder"),
        ({"folder": "", "bucket": "s3://key:secret@sets"}, "bucket"),
        ({"folder": "", "bucket": "https://example.org/x"}, "bucket"),
        ({"address": "oss://key:secret@sets"}, "address"),
        ({"all_workspaces": ""}, "workspaces"),
        ({"all_clusters": ""}, "Add a cluster, or select all clusters."),
        ({"address": "pfs://1"}, "“other” maps this address on the same cluster already."),
    ],
)
def test_invalid_mapping_is_refused_at_its_field(client: Client, changes: dict[str, str], wrong: str) -> None:
    make_site_storage("pfs://1", "/data/other", name="other", clusters={make_cluster(): ""})
    assert problems(client.post(f"{LIST}add/", sent(**{"folder": "/data", **changes}))) == [wrong]


def test_staff_without_administration_can_not_change_mappings(client: Client) -> None:
    staff = make_user(is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(codename__endswith="_sitestorage"))
    client.force_login(staff)
    assert client.get(f"{LIST}add/").status_code == 403


def test_setting_of_clusters_moves_into_mappings(db: None) -> None:
    workspace, key = make_workspace(), encryption.encrypt("s3cretkey")
    store = {"bucket": "s3://sets", "access_key": "AK", "secret_key": f"encrypted:{key}"}
    nas = {"folder": "/data/nas", "read_only": True, "path": "/mnt/nas"}
    kept: dict[str, Any] = {"cpu_milli": 8000}
    one = make_cluster(config={**kept, "datasets": {"pfs://1": "file:///a", "nas://": nas, "oss://s": store}})
    gone = {"folder": "/data/nas", "workspaces": ["gone", workspace.slug]}
    more = {"pfs://1": "/b", "nas://": gone, "d-1": {**gone, "workspaces": ["gone"]}}
    two = make_cluster(config={**kept, "datasets": more})
    migration = importlib.import_module("jobs.migrations.0044_move_cluster_datasets")
    migration.move(apps, None)
    found = {cluster.pk: site_storage.supply_mappings(cluster.pk, workspace.pk) for cluster in (one, two)}
    assert found == {
        one.pk: {
            "pfs://1": StorageMapping("/a"),
            "nas://": StorageMapping("/data/nas", "/mnt/nas", read_only=True),
            "oss://s": StorageMapping(bucket="s3://sets", access_key="AK", secret_key="s3cretkey"),
        },
        two.pk: {
            "pfs://1": StorageMapping("/b"),
            "nas://": StorageMapping("/data/nas"),
            "d-1": StorageMapping("/data/nas", is_admitted=False),
        },
    }
    assert not site_storage.find_mappings(two.pk, make_workspace().pk)["nas://"].is_admitted
    assert SiteStorage.objects.count() == 5
    assert [cluster.config for cluster in Cluster.objects.all()] == [kept, kept]


def test_workspace_that_is_gone_leaves_mapping_closed(client: Client) -> None:
    workspace, cluster = make_workspace(), make_cluster()
    make_site_storage("nas://", "/data", workspaces=[workspace])
    assert site_storage.find_mappings(cluster.pk, workspace.pk)["nas://"].is_admitted
    workspace.delete()
    assert not site_storage.find_mappings(cluster.pk, make_workspace().pk)["nas://"].is_admitted
