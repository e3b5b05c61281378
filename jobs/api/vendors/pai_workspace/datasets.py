"""Datasets; the location is that of the default version."""

from __future__ import annotations

import json
from typing import Any, Final

from django.db.models import OuterRef, Q, QuerySet, Subquery

from jobs.api.vendors.operations import (
    Call,
    InvalidParameters,
    JsonObject,
    Kind,
    Location,
    Operation,
    Parameter,
    Support,
    WrongValue,
)
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
from jobs.assets.addresses import OBJECTS
from jobs.assets.forms import change_form, create_form
from jobs.models import AssetKind, Dataset, DatasetVersion

MOUNT_PATH: Final = "mountPath"
"""The key of Options with the path in the job."""

DIRECTORY: Final = "DIRECTORY"
FILE: Final = "FILE"
COMMON: Final = "COMMON"
USER: Final = "USER"
EVERYBODY: Final = "PAI_PUBLIC_DATASET"
_SOURCES: Final = {
    "OSS": Dataset.Source.OSS,
    "NAS": Dataset.Source.NAS,
    "EXTREMENAS": Dataset.Source.NAS_EXTREME,
    "CPFS": Dataset.Source.CPFS,
    "BMCPFS": Dataset.Source.BMCPFS,
    "S3": Dataset.Source.S3,
    "BOS": Dataset.Source.BOS,
    "PFS": Dataset.Source.PFS,
    "HOST": Dataset.Source.HOST,
    "HTTP": Dataset.Source.HTTP,
    "UPLOAD": Dataset.Source.UPLOAD,
}
_SOURCE_NAMES: Final = {source: name for name, source in _SOURCES.items()}
_NAMES: Final = {"name": "Name", "mount_path": f"Options.{MOUNT_PATH}"}
_IS_FILE: Final = Q(source=Dataset.Source.HTTP) | (Q(source__in=list(OBJECTS)) & ~Q(uri__endswith="/"))
"""What an address says of itself: an object without a slash at its end is a file."""


def _list_datasets(call: Call) -> JsonObject:
    values = call.values
    rows = _with_uri(list_assets(call, AssetKind.DATASET))
    if name := values["Name"]:
        rows = rows.filter(name__icontains=name)
    if sources := split_values(values["DataSourceTypes"]):
        rows = rows.filter(source__in=[_SOURCES[each] for each in sources if each in _SOURCES])
    if properties := split_values(values["Properties"]):
        rows = rows.filter(_of_properties(properties))
    if (types := split_values(values["SourceTypes"])) and not {USER, EVERYBODY} <= types:
        rows = rows.filter(workspace__isnull=EVERYBODY in types) if types & {USER, EVERYBODY} else rows.none()
    if values["Label"] or values["SourceId"] or COMMON not in (split_values(values["DataTypes"]) or {COMMON}):
        rows = rows.none()
    found, total = read_page(call, rows, BY_TIME)
    return {"Datasets": [_render(each) for each in found], "TotalCount": total}


def _of_properties(properties: frozenset[str]) -> Q:
    """Return the condition for datasets of one of the properties."""
    if {FILE, DIRECTORY} <= properties:
        return Q()
    if FILE in properties:
        return _IS_FILE
    return ~_IS_FILE if DIRECTORY in properties else Q(pk=None)


def _get_dataset(call: Call) -> JsonObject:
    dataset = find_asset(call, AssetKind.DATASET, call.values["DatasetId"])
    version = dataset.version_called("")
    dataset.uri = version.uri if version else ""
    return _render(dataset)


def _with_uri(rows: QuerySet[Dataset]) -> QuerySet[Dataset]:
    """Return the rows with the location of their default version as `uri`."""
    default = DatasetVersion.objects.filter(dataset=OuterRef("pk"), is_default=True)
    return rows.annotate(uri=Subquery(default.values("uri")[:1]))


def _render(dataset: Any) -> JsonObject:
    is_object = dataset.source in OBJECTS and not (dataset.uri or "").endswith("/")
    return {
        "DatasetId": dataset.key,
        "Name": dataset.name,
        "Description": dataset.description,
        "Uri": dataset.uri or "",
        "Options": json.dumps({MOUNT_PATH: dataset.mount_path, **dataset.options}, ensure_ascii=False),
        "DataSourceType": _SOURCE_NAMES[Dataset.Source(dataset.source)],
        "DataType": COMMON,
        "Property": FILE if is_object or dataset.source == Dataset.Source.HTTP else DIRECTORY,
        "ProviderType": "",
        "SourceId": "",
        "SourceType": EVERYBODY if dataset.is_public else USER,
        "Accessibility": PUBLIC,
        "Labels": [],
        "UserId": name_creator(dataset),
        "OwnerId": name_creator(dataset),
        "WorkspaceId": name_workspace(dataset),
        "GmtCreateTime": render_time(dataset.created_at),
        "GmtModifiedTime": render_time(dataset.updated_at),
    }


def _create_dataset(call: Call) -> JsonObject:
    values = call.values
    fields = {
        "name": values["Name"],
        "source": _SOURCES[values["DataSourceType"]].value,
        "uri": values["Uri"],
        "description": values["Description"],
        "workspace": target_workspace(call).pk,
        "read_only": False,
        **_read_options(values["Options"]),
    }
    return {"DatasetId": save(create_form(AssetKind.DATASET, call.person, fields), _NAMES).key}


def _read_options(text: str | None) -> dict[str, Any]:
    """Return the columns that Options fill.  Raises InvalidParameters."""
    if not text:
        return {}
    try:
        options = json.loads(text)
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        raise InvalidParameters([WrongValue("Options", "JSON object as a string")])
    path = options.pop(MOUNT_PATH, None)
    if path is not None and not isinstance(path, str):
        raise InvalidParameters([WrongValue(f"Options.{MOUNT_PATH}", "string")])
    columns: dict[str, Any] = {"options": {key: _as_text(value) for key, value in options.items()}}
    return {**columns, "mount_path": path} if path else columns


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _update_dataset(call: Call) -> JsonObject:
    dataset = find_managed_asset(call, AssetKind.DATASET, call.values["DatasetId"])
    fields = {"name": call.values["Name"], "description": call.values["Description"]}
    given = {name: value for name, value in fields.items() if value is not None}
    save(change_form(call.person, dataset, {**given, **_read_options(call.values["Options"])}), _NAMES)
    return {}


def _delete_dataset(call: Call) -> JsonObject:
    remove(call, AssetKind.DATASET, call.values["DatasetId"])
    return {}


def _publish_dataset(call: Call) -> JsonObject:
    find_managed_asset(call, AssetKind.DATASET, call.values["DatasetId"])
    return {}


def _ignore_parameter(
    name: str, note: str, kind: Kind = Kind.TEXT, fields: tuple[Parameter, ...] = ()
) -> Parameter:
    return Parameter(name, kind, Location.BODY, fields=fields, support=Support.IGNORED, note=note)


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "ListDatasets",
        "GET",
        "api/v1/datasets",
        _list_datasets,
        parameters=(
            *list_parameters(BY_TIME),
            Parameter("WorkspaceId", note="Without it, all datasets that the caller may use."),
            Parameter("Name"),
            Parameter("Properties"),
            Parameter("DataSourceTypes"),
            Parameter("SourceTypes", note=f"{EVERYBODY}: available to everyone; {USER}: of a workspace."),
            Parameter("DataTypes", support=Support.PARTIAL, note=f"All datasets are {COMMON}."),
            Parameter("Label", support=Support.PARTIAL, note="No dataset has labels, so none is found."),
            Parameter("SourceId", support=Support.PARTIAL, note="No dataset has one, so none is found."),
            Parameter("Accessibility", choices=ACCESSIBILITY, note="No dataset is PRIVATE."),
        ),
        since=RELEASE,
    ),
    Operation(
        "GetDataset",
        "GET",
        "api/v1/datasets/<str:DatasetId>",
        _get_dataset,
        parameters=(id_in_path("DatasetId"),),
        since=RELEASE,
    ),
    Operation(
        "CreateDataset",
        "POST",
        "api/v1/datasets",
        _create_dataset,
        scope="admin",
        parameters=(
            Parameter("Name", location=Location.BODY, required=True),
            Parameter("Uri", location=Location.BODY, required=True),
            Parameter(
                "DataSourceType",
                location=Location.BODY,
                required=True,
                choices=tuple(_SOURCES),
                support=Support.PARTIAL,
                note="Others, such as MAXCOMPUTE, are refused.",
            ),
            Parameter("WorkspaceId", location=Location.BODY),
            Parameter("Description", location=Location.BODY),
            Parameter(
                "Options", location=Location.BODY, note="mountPath, and mount options that backends read."
            ),
            new_accessibility(),
            _ignore_parameter(
                "Property", "Follows from Uri: an object without a slash at its end is a FILE."
            ),
            _ignore_parameter("DataType", f"All datasets are {COMMON}."),
            _ignore_parameter("SourceType", f"A workspace's datasets are {USER}."),
            _ignore_parameter("SourceId", "Not stored."),
            _ignore_parameter("ProviderType", "Not stored."),
            _ignore_parameter("Labels", "Not stored.", Kind.LIST, (Parameter("Key"), Parameter("Value"))),
        ),
        support=Support.PARTIAL,
        note="Needs the rights of an admin or O&M admin of the workspace.",
        since=RELEASE,
    ),
    Operation(
        "UpdateDataset",
        "PUT",
        "api/v1/datasets/<str:DatasetId>",
        _update_dataset,
        scope="admin",
        parameters=(
            id_in_path("DatasetId"),
            Parameter("Name", location=Location.BODY),
            Parameter("Description", location=Location.BODY),
            Parameter("Options", location=Location.BODY),
        ),
        since=RELEASE,
    ),
    Operation(
        "DeleteDataset",
        "DELETE",
        "api/v1/datasets/<str:DatasetId>",
        _delete_dataset,
        scope="admin",
        parameters=(id_in_path("DatasetId"),),
        note="A dataset that jobs used is retired.",
        since=RELEASE,
    ),
    Operation(
        "PublishDataset",
        "PUT",
        "api/v1/datasets/<str:DatasetId>/publish",
        _publish_dataset,
        scope="admin",
        parameters=(id_in_path("DatasetId"),),
        support=Support.IGNORED,
        note="The members of the workspace see the dataset already.",
        since=RELEASE,
    ),
)
