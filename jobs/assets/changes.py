"""Changes of assets: each is in the audit trail, and no used asset is deleted."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from jobs.models import Asset, AssetKind, AssetUse, Dataset, DatasetVersion
from quotas.models import User


@transaction.atomic
def add_version(dataset: Dataset, uri: str, *, by: User | None, description: str = "") -> DatasetVersion:
    """Add a version of a dataset and make it the default."""
    Dataset.objects.select_for_update().get(pk=dataset.pk)
    last = dataset.versions.aggregate(last=Max("number"))["last"] or 0
    version = DatasetVersion(
        dataset=dataset, number=last + 1, uri=uri, description=description, created_by=by
    )
    _as_default(version)
    return version


@transaction.atomic
def choose_version(version: DatasetVersion) -> None:
    """Make the version the default of its dataset."""
    Dataset.objects.select_for_update().get(pk=version.dataset_id)
    _as_default(version)


def _as_default(version: DatasetVersion) -> None:
    for other in DatasetVersion.objects.filter(dataset_id=version.dataset_id, is_default=True):
        if other.pk != version.pk:
            other.is_default = False
            other.save()
    version.is_default = True
    version.save()


def is_used(asset: Asset) -> bool:
    """Tell whether some job was made of it."""
    return AssetUse.objects.filter(kind=asset.KIND, key=asset.key).exists()


def take_away(asset: Asset) -> bool:
    """Delete an asset, or retire it when jobs used it; tell whether it is deleted."""
    with transaction.atomic():
        if not is_used(asset):
            asset.delete()
            return True
        retire(asset)
        return False


def retire(asset: Asset) -> None:
    """Offer it no more; jobs that name it are refused from now on."""
    asset.retired_at = timezone.now()
    asset.save()


def bring_back(asset: Asset) -> None:
    """Offer it again."""
    asset.retired_at = None
    asset.save()


def count_jobs(asset: Asset) -> int:
    """How many jobs were made of it."""
    return AssetUse.objects.filter(kind=AssetKind(asset.KIND), key=asset.key).count()
