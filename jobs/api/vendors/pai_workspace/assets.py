"""Assets of workspaces, as images, datasets and code sources have them in common."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404

from jobs.api.vendors.alibaba import AlibabaApi
from jobs.api.vendors.api import ErrorKind, VendorError
from jobs.api.vendors.operations import Call, Location, Parameter, Support
from jobs.assets import changes, visibility
from jobs.assets.forms import AssetForm
from jobs.models import Asset, AssetKind
from jobs.submission.targets import quotas_open_to
from quotas.access import match_workspace, workspaces_of
from quotas.models import User, Workspace

RELEASE: Final = "3.0.1"
"""The release of alibabacloud_aiworkspace20210204 that has all operations."""

PUBLIC: Final = "PUBLIC"
"""The accessibility of every asset: whoever sees its workspace sees it."""

ACCESSIBILITY: Final = ("PUBLIC", "PRIVATE")

FIELD_NAMES: Final[Mapping[str, str]] = {
    "workspace": "WorkspaceId",
    "description": "Description",
    "uri": "Uri",
    "source": "DataSourceType",
    "options": "Options",
    "address": "ImageUri",
    "repo": "CodeRepo",
    "branch": "CodeBranch",
    "commit": "CodeCommit",
    "username": "CodeRepoUserName",
    "password": "CodeRepoAccessToken",
    "framework": "Labels",
    "version": "Labels",
    "python": "Labels",
    "accelerator": "Labels",
}
"""Fields of the forms, by their names in requests."""


def new_accessibility() -> Parameter:
    """Return the parameter with which a new asset is public or private."""
    note = "PRIVATE is accepted; the members of the workspace see the asset all the same."
    return Parameter(
        "Accessibility", location=Location.BODY, choices=ACCESSIBILITY, support=Support.PARTIAL, note=note
    )


def id_in_path(name: str) -> Parameter:
    """Return the parameter for an id in the address."""
    return Parameter(name, location=Location.PATH, required=True)


def invalid(message: str) -> VendorError:
    """Return the error of a wrong value."""
    status, code = AlibabaApi.errors[ErrorKind.INVALID]
    return VendorError(status, code, message)


def render_time(moment: datetime) -> str:
    """Return a time as the service writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def find_workspace(user: User, slug: str) -> Workspace:
    """Return a workspace of the person.  Raises Http404."""
    found = workspaces_of(user).filter(match_workspace(slug)).first()
    if found is None:
        raise Http404
    return found


def find_default_workspace(user: User) -> Workspace:
    """Return the workspace of jobs that name none, or else the person's first one.  Raises Http404."""
    quota = quotas_open_to(user).first()
    found = quota.workspace if quota is not None else workspaces_of(user).order_by("created_at", "id").first()
    if found is None:
        raise Http404
    return found


def target_workspace(call: Call) -> Workspace:
    """Return the workspace for a new asset: the one of the call, or the person's default one.

    Raises Http404, PermissionDenied.
    """
    slug = call.values["WorkspaceId"]
    workspace = find_workspace(call.person, slug) if slug else find_default_workspace(call.person)
    if not visibility.may_keep_in(call.person, workspace):
        raise PermissionDenied
    return workspace


def list_assets(call: Call, kind: AssetKind) -> QuerySet[Any]:
    """Return the assets that the person may use: of a workspace, or all of them.  Raises Http404."""
    rows = visibility.choices(call.person, None, kind).select_related("created_by")
    if slug := call.values["WorkspaceId"]:
        rows = rows.filter(workspace=find_workspace(call.person, slug))
    return rows.none() if call.values.get("Accessibility") not in (None, PUBLIC) else rows


def find_asset(call: Call, kind: AssetKind, key: str) -> Any:
    """Return an asset that is in use and that the person may see.  Raises Http404."""
    found = visibility.choices(call.person, None, kind).select_related("created_by").filter(key=key).first()
    if found is None:
        raise Http404
    return found


def find_managed_asset(call: Call, kind: AssetKind, key: str) -> Any:
    """Return an asset that the person may change.  Raises Http404, PermissionDenied."""
    asset = find_asset(call, kind, key)
    if not visibility.may_keep(call.person, asset):
        raise PermissionDenied
    return asset


def save(form: AssetForm, names: Mapping[str, str]) -> Asset:
    """Save a form; `names` are those of its fields that differ between kinds.  Raises VendorError."""
    if not form.is_valid():
        known = {**FIELD_NAMES, **names}
        raise invalid(
            " ".join(
                f"{known.get(field, field)}: {sentence}"
                for field, sentences in form.errors.items()
                for sentence in sentences
            )
        )
    with transaction.atomic():
        asset: Asset = form.save()
    return asset


def remove(call: Call, kind: AssetKind, key: str) -> None:
    """Delete an asset, or retire it where jobs used it.  Raises Http404, PermissionDenied."""
    changes.take_away(find_managed_asset(call, kind, key))


def name_creator(asset: Asset) -> str:
    """Return the login name of whoever added an asset; '' if that is not known."""
    return asset.created_by.username if asset.created_by else ""


def name_workspace(asset: Asset) -> str:
    """Return the id of an asset's workspace; '' for everybody's."""
    return asset.workspace.slug if asset.workspace else ""
