"""Requests for checks of assets: a row, and a trigger."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.utils.crypto import get_random_string

from jobs.backends import registry
from jobs.live import triggers
from jobs.models import Asset, AssetCheck, AssetKind, Dataset
from jobs.models.assets import KEY_LENGTH, KEY_LETTERS
from quotas.access import may_submit_in
from quotas.models import Quota, User

TRIED: Final = frozenset({AssetKind.IMAGE, AssetKind.DATASET, AssetKind.CODE})
"""What can be tried; the others are carried to their targets and mean nothing here."""

MOST_OPEN: Final = 5


class CheckRefused(Exception):
    """The asset can't be checked now; `code` is one of `jobs.messages.assets`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def can_check(asset: Asset) -> bool:
    """Tell whether a node can try the asset: not what is carried, nor what the console itself stores."""
    is_stored_here = isinstance(asset, Dataset) and asset.source == Dataset.Source.UPLOAD
    return asset.KIND in TRIED and not is_stored_here


def find_quota(user: User, asset: Asset) -> Quota | None:
    """Return a quota with which the person's jobs could use the asset."""
    spaces = may_submit_in(user)
    if asset.workspace_id is not None:
        spaces = spaces.filter(pk=asset.workspace_id)
    backends = [name for name in registry.names() if registry.find(name).config.tries_assets]
    found = Quota.objects.filter(workspace__in=spaces, cluster__enabled=True, cluster__backend__in=backends)
    return found.select_related("workspace", "cluster").order_by("cluster_id", "id").first()


@transaction.atomic
def request_check(user: User, asset: Asset, version: int | None = None) -> AssetCheck:
    """Request a check as the person, or return the one under way.  Raises Shut."""
    if not can_check(asset):
        raise CheckRefused("no_trial")
    mine = AssetCheck.objects.filter(asker=user, ended_at=None)
    before = mine.filter(kind=asset.KIND, key=asset.key, version=version).first()
    if before is not None:
        return before
    if mine.count() >= MOST_OPEN:
        raise CheckRefused("too_many_trials")
    place = find_quota(user, asset)
    if place is None:
        raise CheckRefused("no_cluster")
    check = AssetCheck.objects.create(
        asker=user,
        cluster=place.cluster,
        workspace=place.workspace,
        kind=asset.KIND,
        key=asset.key,
        version=version,
        public_id=get_random_string(KEY_LENGTH, KEY_LETTERS),
    )
    triggers.trigger_on_commit("drain", place.cluster_id)
    return check
