"""Removing what no job, no draft and no dataset uses, a while after it was last sent or asked for."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from jobs.assets.uploads import arrivals, store, supply, uploaded_trees
from jobs.models import Blob, DatasetCopy, Draft, HeldBlob, HeldTree, StoredObject, TreeUse, UploadedTree
from jobs.trees import address

MOST: Final = 500
"""So many rows of a kind are looked at each time."""

UNCLAIMED: Final = timedelta(hours=1)
"""How long an object may be there before anything refers to it: whoever stores it is not done yet."""


def remove_expired() -> None:
    """Remove everything that has expired."""
    arrivals.remove_old()
    supply.remove_old()
    for row in UploadedTree.objects.filter(kept_until__lt=timezone.now()).order_by("kept_until")[:MOST]:
        if not _is_used(row) or not uploaded_trees.keep_on(row):
            _remove_tree(row)
    HeldBlob.objects.filter(
        pk__in=HeldBlob.objects.filter(kept_until__lt=timezone.now()).values("pk")[: MOST * 20]
    ).delete()
    _remove_blobs()
    _remove_objects()


def _is_used(row: UploadedTree) -> bool:
    return (
        TreeUse.objects.filter(tree=row).exists()
        or DatasetCopy.objects.filter(tree=row).exists()
        or Draft.objects.filter(trees__contains=address(row.sha256)).exists()
    )


def _remove_tree(row: UploadedTree) -> None:
    with transaction.atomic():
        again = UploadedTree.objects.select_for_update().filter(pk=row.pk, kept_until__lt=timezone.now())
        if again.first() is None or _is_used(row):
            return
        HeldTree.objects.filter(tree=row).delete()
        row.delete()


def _remove_blobs() -> None:
    with transaction.atomic():
        due = Blob.objects.select_for_update().filter(kept_until__lt=timezone.now())
        keys = list(due.values_list("pk", flat=True)[:MOST])
        HeldBlob.objects.filter(blob__in=keys).delete()
        Blob.objects.filter(pk__in=keys).delete()


def _remove_objects() -> None:
    due = StoredObject.objects.filter(
        blobs=None, trees=None, created_at__lt=timezone.now() - UNCLAIMED
    ).order_by("pk")
    for stored in due[:MOST]:
        store.discard(stored)
