"""Rights to see and manage assets.

What belongs to a workspace is seen and named by its members and kept by its admins and algorithm O&M
admins; what is for everybody is kept by whoever runs the console.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from jobs.models import ASSETS, Asset, AssetKind, RamRole
from quotas.access import Verb, Visitor, administers, can, managed_by, workspaces_of
from quotas.models import Workspace


def visible_to(user: Visitor, kind: AssetKind) -> QuerySet[Any]:
    """Every asset of a kind that the person may know of, retired ones too."""
    mine = Q(workspace=None) | Q(workspace__in=workspaces_of(user))
    rows: QuerySet[Any] = ASSETS[kind]._default_manager.filter(mine)  # noqa: SLF001 abstract ones have no other
    return rows.select_related("workspace")


def find(user: Visitor, kind: str, key: str) -> Asset | None:
    """The asset of that id; None for what there is not, or not for them."""
    if kind not in set(AssetKind):
        return None
    found: Asset | None = visible_to(user, AssetKind(kind)).filter(key=key).first()
    return found


def choices(user: Visitor, workspace: Workspace | None, kind: AssetKind) -> QuerySet[Any]:
    """Return the assets that jobs in the workspace, or in any of the person's, may use, by name."""
    offered = visible_to(user, kind).filter(retired_at=None)
    if workspace is not None:
        offered = offered.filter(Q(workspace=None) | Q(workspace=workspace))
    return offered


def may_keep(user: Visitor, asset: Asset) -> bool:
    """Tell whether the person may change, retire and remove it.

    A role with an access key is for the console's admins: who changes its ARN gets what the key may assume.
    """
    if asset.workspace is None or (isinstance(asset, RamRole) and asset.access_key_id):
        return administers(user)
    return can(user, Verb.MANAGE, asset.workspace)


def may_keep_in(user: Visitor, workspace: Workspace | None) -> bool:
    """Tell whether the person may add assets there; without a workspace, for everybody."""
    return administers(user) if workspace is None else can(user, Verb.MANAGE, workspace)


def keepable(user: Visitor) -> QuerySet[Workspace]:
    """The workspaces to which the person may add assets."""
    return managed_by(user).order_by("name")
