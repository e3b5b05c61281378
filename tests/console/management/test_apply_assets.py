"""Assets in site.yaml: made, changed and retired as the file says, never with a password."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from console.site_yaml.export import export
from jobs.models import AssetKind, AssetUse, Dataset, Image
from tests.factories import make_job, make_workspace

pytestmark = pytest.mark.django_db

ASSETS = """\
version: 1
assets:
  images:
    image-torch: {name: torch, address: "registry/torch:2", official: true, framework: PyTorch}
  datasets:
    d-coco:
      name: COCO
      workspace: vision
      source: oss
      versions: ["oss://sets/coco/", "oss://sets/coco2/"]
      default: 1
      username: AK
      vpc: net-1
  code:
    code-trainer: {name: trainer, repo: "https://git.example.org/trainer.git", own_secret: GIT_TOKEN}
  vpcs:
    net-1: {name: net, vpc_id: vpc-1, switches: [vsw-1]}
  roles:
    role-1: {name: reader, arn: "acs:ram::1:role/reader"}
"""


def apply(tmp_path: Path, text: str, *options: str) -> str:
    path = tmp_path / "site.yaml"
    path.write_text(text)
    out = StringIO()
    call_command("apply", str(path), *options, stdout=out, stderr=out)
    return out.getvalue()


def test_assets_are_created_from_file_and_exported_unchanged(tmp_path: Path) -> None:
    make_workspace("vision")
    apply(tmp_path, ASSETS)
    dataset = Dataset.objects.get()
    assert (dataset.key, dataset.vpc and dataset.vpc.vpc_id, dataset.read_only) == ("d-coco", "vpc-1", True)
    assert [(row.number, row.is_default) for row in dataset.versions.order_by("number")] == [
        (1, True),
        (2, False),
    ]
    dataset.encrypt("canary")
    dataset.save()
    told = export()
    assert "canary" not in told
    assert dataset.ciphertext not in told
    count = {model: model.objects.count() for model in (Dataset, Image)}
    assert "+" not in apply(tmp_path, told)
    assert {model: model.objects.count() for model in count} == count
    assert Dataset.objects.get().reveal() == "canary", "the file says nothing of it"
    assert export() == told


def test_invalid_assets_are_refused_and_nothing_is_created(tmp_path: Path) -> None:
    with pytest.raises(CommandError):
        apply(tmp_path, ASSETS)
    assert not Image.objects.exists(), "all of it or nothing"
    make_workspace("vision")
    with pytest.raises(CommandError):
        apply(tmp_path, ASSETS.replace("https://git.example.org", "file:///etc"))


def test_prune_deletes_unused_assets_and_retires_used_ones(tmp_path: Path) -> None:
    make_workspace("vision")
    apply(tmp_path, ASSETS)
    AssetUse.objects.create(job=make_job(), kind=AssetKind.DATASET, key="d-coco")
    apply(tmp_path, "version: 1\nassets: {images: {}, datasets: {}}\n", "--prune")
    assert not Image.objects.exists()
    assert Dataset.objects.get().is_retired
