"""Asking for a trial of an asset: a row, and the doorbell."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.utils.crypto import get_random_string

from jobs.live import queue
from jobs.models import Asset, AssetKind, AssetTrial
from jobs.models.assets import KEY_LENGTH, KEY_LETTERS
from quotas.access import may_submit_in
from quotas.models import Quota, User

TRIED: Final = frozenset({AssetKind.IMAGE, AssetKind.DATASET, AssetKind.CODE})
"""What can be tried; the others are carried to their targets and mean nothing here."""

BACKENDS: Final = frozenset({"local"})
"""Backends that try things."""

MOST_OPEN: Final = 5


class Shut(Exception):
    """It can't be tried now; `code` is one of `jobs.messages.assets`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def place_of(user: User, asset: Asset) -> Quota | None:
    """Where the person's jobs could be made of it."""
    spaces = may_submit_in(user)
    if asset.workspace_id is not None:
        spaces = spaces.filter(pk=asset.workspace_id)
    found = Quota.objects.filter(workspace__in=spaces, cluster__enabled=True, cluster__backend__in=BACKENDS)
    return found.select_related("workspace", "cluster").order_by("cluster_id", "id").first()


@transaction.atomic
def ask(user: User, asset: Asset, version: int | None = None) -> AssetTrial:
    """Have it tried as the person; one that is under way already is answered.  Raises Shut."""
    if asset.KIND not in TRIED:
        raise Shut("no_trial")
    mine = AssetTrial.objects.filter(asker=user, ended_at=None)
    before = mine.filter(kind=asset.KIND, key=asset.key, version=version).first()
    if before is not None:
        return before
    if mine.count() >= MOST_OPEN:
        raise Shut("too_many_trials")
    place = place_of(user, asset)
    if place is None:
        raise Shut("no_cluster")
    trial = AssetTrial.objects.create(
        asker=user,
        cluster=place.cluster,
        workspace=place.workspace,
        kind=asset.KIND,
        key=asset.key,
        version=version,
        public_id=get_random_string(KEY_LENGTH, KEY_LETTERS),
    )
    queue.kick_on_commit("drain", place.cluster_id)
    return trial
