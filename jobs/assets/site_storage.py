"""Storage mappings of a cluster, for the jobs of a workspace."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, NullIf

from jobs.facilities import StorageMapping
from jobs.models import SiteStorage, SiteStorageCluster
from quotas.encryption import Unreadable

MOST_SUGGESTIONS: Final = 3


def find_mappings(cluster_id: int, workspace_id: int) -> dict[str, StorageMapping]:
    """Return the cluster's mappings by address, without secret keys, as a workspace's jobs may use them."""
    return {row.address: _mapping(row) for row in _rows(cluster_id, workspace_id)}


def supply_mappings(cluster_id: int, workspace_id: int) -> dict[str, StorageMapping]:
    """Return the same with the secret keys of those that the workspace may use, for the backend alone."""
    rows = list(_rows(cluster_id, workspace_id))
    found = {row.address: _mapping(row) for row in rows}
    keys = {row.address: _secret_key(row) for row in rows if found[row.address].is_admitted}
    return {address: replace(found[address], secret_key=keys.get(address, "")) for address in found}


def reveal_mapping(row: SiteStorage) -> StorageMapping:
    """Return a mapping with its secret key, whatever the cluster and workspace."""
    return replace(_columns(row), secret_key=_secret_key(row))


def suggest(name: str, mappings: dict[str, StorageMapping]) -> list[str]:
    """Return the ids or addresses that the workspace may use and that are most like `name`."""
    usable = [each for each, mapping in mappings.items() if mapping.is_admitted]
    close = get_close_matches(name, usable, MOST_SUGGESTIONS)
    scheme = name.partition("://")[0]
    alike = [each for each in usable if "://" in name and each.startswith(f"{scheme}://")]
    return list(dict.fromkeys((*close, *alike)))[:MOST_SUGGESTIONS]


def find_conflict(row: SiteStorage, cluster_ids: Collection[int]) -> SiteStorage | None:
    """Return another mapping of the same address on one of the same clusters, if there is one.

    `cluster_ids` are those that the row names, which count if it is not for all.
    """
    others = SiteStorage.objects.filter(address=row.address).exclude(pk=row.pk)
    if not row.all_clusters:
        others = others.filter(Q(all_clusters=True) | Q(clusters__cluster__in=cluster_ids))
    return others.first()


def _rows(cluster_id: int, workspace_id: int) -> QuerySet[SiteStorage]:
    own = SiteStorageCluster.objects.filter(storage=OuterRef("pk"), cluster=cluster_id)
    members = SiteStorage.workspaces.through.objects.filter(
        sitestorage_id=OuterRef("pk"), workspace_id=workspace_id
    )
    return (
        SiteStorage.objects.filter(Q(all_clusters=True) | Exists(own))
        .annotate(
            found_folder=Coalesce(NullIf(Subquery(own.values("folder")[:1]), Value("")), "folder"),
            is_member=Exists(members),
        )
        .order_by("-name")
    )


def _mapping(row: SiteStorage) -> StorageMapping:
    return replace(
        _columns(row),
        folder=row.found_folder,  # type: ignore[attr-defined]
        is_admitted=row.all_workspaces or row.is_member,  # type: ignore[attr-defined]
    )


def _columns(row: SiteStorage) -> StorageMapping:
    return StorageMapping(
        folder=row.folder,
        path=row.mount_path,
        read_only=row.read_only,
        bucket=row.bucket,
        endpoint=row.endpoint,
        region=row.region,
        access_key=row.access_key,
    )


def _secret_key(row: SiteStorage) -> str:
    try:
        return row.reveal()
    except Unreadable:
        return ""  # the store then says that the key is missing
