"""Images: those that admins maintain for everybody, and those of workspaces."""

from __future__ import annotations

from typing import Final

from django.db.models import Q

from jobs.api.vendors.operations import Call, JsonObject, Kind, Location, Operation, Parameter, Support
from jobs.api.vendors.pai_workspace import labels
from jobs.api.vendors.pai_workspace.assets import (
    ACCESSIBILITY,
    PUBLIC,
    RELEASE,
    find_asset,
    find_managed_asset,
    id_in_path,
    list_assets,
    name_creator,
    name_workspace,
    new_accessibility,
    remove,
    render_time,
    save,
    target_workspace,
)
from jobs.api.vendors.pai_workspace.lists import BY_TIME, list_parameters, read_page, split_values
from jobs.assets.forms import create_form
from jobs.models import AssetKind, Image

_LABELLED: Final = ("framework", "version", "python", "accelerator", "official")
_LABEL: Final = (Parameter("Key"), Parameter("Value"))
_SYSTEM_ONLY: Final = (
    f"Fills {labels.FRAMEWORK}, {labels.PYTHON} and {labels.CHIP}; other labels are not stored."
)


def _list_images(call: Call) -> JsonObject:
    values = call.values
    rows = labels.filter_images(list_assets(call, AssetKind.IMAGE), labels.parse(values["Labels"]))
    if name := values["Name"]:
        rows = rows.filter(name__icontains=name)
    if text := values["Query"]:
        rows = rows.filter(
            Q(name__icontains=text) | Q(description__icontains=text) | Q(address__icontains=text)
        )
    if user := values["UserId"]:
        rows = rows.filter(created_by__username=user)
    found, total = read_page(call, rows, BY_TIME)
    images = [{"ImageId": each.key, **_render(each, verbose=values["Verbose"])} for each in found]
    return {"Images": images, "TotalCount": total}


def _get_image(call: Call) -> JsonObject:
    image = find_asset(call, AssetKind.IMAGE, call.values["ImageId"])
    return _render(image, verbose=call.values["Verbose"])


def _render(image: Image, *, verbose: bool) -> JsonObject:
    return {
        "ImageUri": image.address,
        "Name": image.name,
        "Description": image.description,
        "Accessibility": PUBLIC,
        "Labels": labels.of_image(image) if verbose else [],
        "UserId": name_creator(image),
        "ParentUserId": "",
        "WorkspaceId": name_workspace(image),
        "GmtCreateTime": render_time(image.created_at),
        "GmtModifiedTime": render_time(image.updated_at),
    }


def _add_image(call: Call) -> JsonObject:
    values = call.values
    fields = {
        "name": values["Name"],
        "address": values["ImageUri"],
        "description": values["Description"],
        "workspace": target_workspace(call).pk,
        **labels.columns_of(values["Labels"] or ()),
    }
    image = save(create_form(AssetKind.IMAGE, call.person, fields), {"name": "Name"})
    return {"ImageId": image.key}


def _remove_image(call: Call) -> JsonObject:
    remove(call, AssetKind.IMAGE, call.values["ImageId"])
    return {}


def _publish_image(call: Call) -> JsonObject:
    return {"ImageId": find_managed_asset(call, AssetKind.IMAGE, call.values["ImageId"]).key}


def _list_image_labels(call: Call) -> JsonObject:
    values = call.values
    rows = labels.filter_images(list_assets(call, AssetKind.IMAGE), labels.parse(values["LabelFilter"]))
    if key := values["ImageId"]:
        rows = rows.filter(key=key)
    wanted = split_values(values["LabelKeys"])
    pairs = {
        (label["Key"], label["Value"])
        for image in rows.select_related(None).only(*_LABELLED).order_by()
        for label in labels.of_image(image)
        if not wanted or label["Key"] in wanted
    }
    found = [{"Key": key, "Value": value} for key, value in sorted(pairs)]
    return {"Labels": found, "TotalCount": len(found)}


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "ListImages",
        "GET",
        "api/v1/images",
        _list_images,
        parameters=(
            *list_parameters(BY_TIME),
            Parameter("WorkspaceId", note="Without it, all images that the caller may use."),
            Parameter("Labels"),
            Parameter("Name"),
            Parameter("Query"),
            Parameter("UserId"),
            Parameter("ParentUserId", support=Support.IGNORED, note="Accounts have no parents."),
            Parameter("Accessibility", choices=ACCESSIBILITY, note="No image is PRIVATE."),
            Parameter("Verbose", Kind.BOOLEAN, default=True),
        ),
        support=Support.PARTIAL,
        note="Labels are the system's own; Size is not known.",
        since=RELEASE,
    ),
    Operation(
        "GetImage",
        "GET",
        "api/v1/images/<str:ImageId>",
        _get_image,
        parameters=(id_in_path("ImageId"), Parameter("Verbose", Kind.BOOLEAN, default=True)),
        support=Support.PARTIAL,
        note="Labels are the system's own; Size is not known.",
        since=RELEASE,
    ),
    Operation(
        "AddImage",
        "POST",
        "api/v1/images",
        _add_image,
        scope="admin",
        parameters=(
            Parameter("Name", location=Location.BODY, required=True),
            Parameter("ImageUri", location=Location.BODY, required=True),
            Parameter("Description", location=Location.BODY),
            Parameter("WorkspaceId", location=Location.BODY),
            Parameter(
                "Labels",
                Kind.LIST,
                Location.BODY,
                fields=_LABEL,
                support=Support.PARTIAL,
                note=_SYSTEM_ONLY,
            ),
            new_accessibility(),
            Parameter(
                "ImageId", location=Location.BODY, support=Support.IGNORED, note="The console gives the id."
            ),
            Parameter("Size", Kind.INTEGER, Location.BODY, support=Support.IGNORED, note="Not stored."),
        ),
        support=Support.PARTIAL,
        note="Needs the rights of an admin or O&M admin of the workspace.",
        since=RELEASE,
    ),
    Operation(
        "RemoveImage",
        "DELETE",
        "api/v1/images/<str:ImageId>",
        _remove_image,
        scope="admin",
        parameters=(id_in_path("ImageId"),),
        note="An image that jobs used is retired.",
        since=RELEASE,
    ),
    Operation(
        "PublishImage",
        "PUT",
        "api/v1/images/<str:ImageId>/publish",
        _publish_image,
        scope="admin",
        parameters=(id_in_path("ImageId"),),
        support=Support.IGNORED,
        note="The members of the workspace see the image already.",
        since=RELEASE,
    ),
    Operation(
        "ListImageLabels",
        "GET",
        "api/v1/image/labels",
        _list_image_labels,
        parameters=(
            Parameter("ImageId"),
            Parameter("LabelFilter"),
            Parameter("LabelKeys"),
            Parameter("WorkspaceId"),
            Parameter("Region", support=Support.IGNORED, note="There is one region."),
        ),
        since=RELEASE,
    ),
)
