"""Storage mappings in site.yaml: made, exported and pruned, never with a secret key."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError

from console.site_yaml.export import export
from jobs.models import SiteStorage
from tests.console.management.test_apply_assets import apply
from tests.factories import make_cluster, make_workspace

pytestmark = pytest.mark.django_db

STORAGE = """\
version: 1
storage:
  pfs://pfs-1:
    folder: /data/vision
    read_only: true
    workspaces: [speech, vision]
    clusters: [local, slurm]
    folders: {slurm: /lustre/vision}
  nas://: {folder: /data/nas, mount_path: /mnt/nas, folders: {slurm: /lustre/nas}}
  sets:
    address: oss://sets.oss-cn-hangzhou.aliyuncs.com
    bucket: s3://sets
    endpoint: https://minio.example.org
    access_key: AKIA
"""


@pytest.fixture(autouse=True)
def named(db: None) -> None:
    for slug in ("vision", "speech"):
        make_workspace(slug)
    for slug in ("local", "slurm"):
        make_cluster(slug)


def test_storage_is_created_from_file_and_exported_unchanged(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        apply(tmp_path, STORAGE, "--diff")
    assert not SiteStorage.objects.exists()
    apply(tmp_path, STORAGE)
    row = SiteStorage.objects.get(name="sets")
    row.encrypt("canary")
    row.save()
    told = export()
    written, said = (yaml.safe_load(text)["storage"] for text in (told, STORAGE))
    assert written == said
    assert "canary" not in told
    assert row.ciphertext not in told
    assert "/storage" not in apply(tmp_path, told)
    assert SiteStorage.objects.get(name="sets").reveal() == "canary", "the file says nothing of it"
    assert export() == told


def test_storage_key_is_dropped_with_another_endpoint_and_left_out_rows_are_pruned(tmp_path: Path) -> None:
    apply(tmp_path, STORAGE)
    row = SiteStorage.objects.get(name="sets")
    row.encrypt("canary")
    row.save()
    changed = (
        STORAGE.replace("minio", "other")
        .replace(", slurm]", "]")
        .replace("    folders: {slurm: /lustre/vision}\n", "")
    )
    assert "~ /storage/pfs:~1~1pfs-1/clusters: slurm /lustre/vision → –" in apply(tmp_path, changed)
    assert SiteStorage.objects.get(name="sets").ciphertext == ""
    apply(tmp_path, "version: 1\nstorage: {nas://: {folder: /data/nas}}\n", "--prune")
    (left,) = SiteStorage.objects.all()
    assert (left.name, left.clusters.count()) == ("nas://", 0)


def test_invalid_storage_is_refused_and_nothing_is_created(tmp_path: Path) -> None:
    for wrong in (
        STORAGE.replace("slurm]", "nowhere]"),
        STORAGE.replace("[speech,", "[nobody,"),
        STORAGE.replace("folder: /data/nas", "bucket: https://example.org"),
        STORAGE.replace("address: oss://sets.oss-cn-hangzhou.aliyuncs.com", "address: nas://"),
    ):
        with pytest.raises(CommandError):
            apply(tmp_path, wrong)
    assert not SiteStorage.objects.exists()
