"""Adding, changing and taking away assets: every change in the audit trail, nothing that was used deleted."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from jobs.models import Asset, AssetKind, AssetUse, Dataset, DatasetVersion
from quotas.models import User


@transaction.atomic
def add_version(dataset: Dataset, uri: str, *, by: User | None, description: str = "") -> DatasetVersion:
    """One more version of a dataset, which is taken from now on when a job names none."""
    Dataset.objects.select_for_update().get(pk=dataset.pk)
    last = dataset.versions.aggregate(last=Max("number"))["last"] or 0
    version = DatasetVersion(
        dataset=dataset, number=last + 1, uri=uri, description=description, created_by=by
    )
    _as_default(version)
    return version


@transaction.atomic
def choose_version(version: DatasetVersion) -> None:
    """Let the version be the one that is taken when a job names none."""
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
    """Whether some job was made of it."""
    return AssetUse.objects.filter(kind=asset.KIND, key=asset.key).exists()


def take_away(asset: Asset) -> bool:
    """Delete it, or retire it when jobs were made of it; whether it is gone."""
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


def users_of(asset: Asset) -> int:
    """How many jobs were made of it."""
    return AssetUse.objects.filter(kind=AssetKind(asset.KIND), key=asset.key).count()
