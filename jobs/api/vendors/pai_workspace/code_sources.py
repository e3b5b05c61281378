"""Code sources.  An access token is stored encrypted and in no answer."""

from __future__ import annotations

from typing import Final

from jobs.api.vendors.operations import Call, JsonObject, Location, Operation, Parameter, Support
from jobs.api.vendors.pai_workspace.assets import (
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
from jobs.api.vendors.pai_workspace.lists import list_parameters, read_page
from jobs.assets.forms import create_form
from jobs.models import AssetKind, CodeSource

_COLUMNS: Final = {"GmtCreateTime": "created_at", "GmtModifyTime": "updated_at", "DisplayName": "name"}
_NAMES: Final = {"name": "DisplayName", "mount_path": "MountPath"}
_FIELDS: Final = {
    "name": "DisplayName",
    "repo": "CodeRepo",
    "branch": "CodeBranch",
    "commit": "CodeCommit",
    "username": "CodeRepoUserName",
    "password": "CodeRepoAccessToken",
    "description": "Description",
    "mount_path": "MountPath",
}
"""Fields of the form, each with its parameter."""


def _list_code_sources(call: Call) -> JsonObject:
    rows = list_assets(call, AssetKind.CODE)
    if name := call.values["DisplayName"]:
        rows = rows.filter(name__icontains=name)
    found, total = read_page(call, rows, _COLUMNS)
    return {"CodeSources": [_render(each) for each in found], "TotalCount": total}


def _get_code_source(call: Call) -> JsonObject:
    return _render(find_asset(call, AssetKind.CODE, call.values["CodeSourceId"]))


def _render(source: CodeSource) -> JsonObject:
    return {
        "CodeSourceId": source.key,
        "DisplayName": source.name,
        "Description": source.description,
        "CodeRepo": source.repo,
        "CodeBranch": source.branch,
        "CodeCommit": source.commit,
        "CodeRepoUserName": source.username,
        "MountPath": source.mount_path,
        "Accessibility": PUBLIC,
        "UserId": name_creator(source),
        "WorkspaceId": name_workspace(source),
        "GmtCreateTime": render_time(source.created_at),
        "GmtModifyTime": render_time(source.updated_at),
    }


def _create_code_source(call: Call) -> JsonObject:
    given = {field: call.values[name] for field, name in _FIELDS.items() if call.values[name]}
    fields = {**given, "workspace": target_workspace(call).pk}
    return {"CodeSourceId": save(create_form(AssetKind.CODE, call.person, fields), _NAMES).key}


def _delete_code_source(call: Call) -> JsonObject:
    key = call.values["CodeSourceId"]
    remove(call, AssetKind.CODE, key)
    return {"CodeSourceId": key}


def _publish_code_source(call: Call) -> JsonObject:
    return {"CodeSourceId": find_managed_asset(call, AssetKind.CODE, call.values["CodeSourceId"]).key}


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "ListCodeSources",
        "GET",
        "api/v1/codesources",
        _list_code_sources,
        parameters=(
            *list_parameters(_COLUMNS),
            Parameter("WorkspaceId", note="Without it, all code sources that the caller may use."),
            Parameter("DisplayName"),
        ),
        note="CodeRepoAccessToken is in no answer.",
        since=RELEASE,
    ),
    Operation(
        "GetCodeSource",
        "GET",
        "api/v1/codesources/<str:CodeSourceId>",
        _get_code_source,
        parameters=(id_in_path("CodeSourceId"),),
        note="CodeRepoAccessToken is in no answer.",
        since=RELEASE,
    ),
    Operation(
        "CreateCodeSource",
        "POST",
        "api/v1/codesources",
        _create_code_source,
        scope="admin",
        parameters=(
            Parameter("DisplayName", location=Location.BODY, required=True),
            Parameter("CodeRepo", location=Location.BODY, required=True, note="https:// or ssh://"),
            Parameter("CodeBranch", location=Location.BODY),
            Parameter("CodeCommit", location=Location.BODY, note="7 to 64 hexadecimal digits."),
            Parameter("CodeRepoUserName", location=Location.BODY),
            Parameter("CodeRepoAccessToken", location=Location.BODY, note="Stored encrypted, never shown."),
            Parameter("Description", location=Location.BODY),
            Parameter("MountPath", location=Location.BODY),
            Parameter("WorkspaceId", location=Location.BODY),
            new_accessibility(),
        ),
        support=Support.PARTIAL,
        note="Needs the rights of an admin or O&M admin of the workspace.",
        since=RELEASE,
    ),
    Operation(
        "DeleteCodeSource",
        "DELETE",
        "api/v1/codesources/<str:CodeSourceId>",
        _delete_code_source,
        scope="admin",
        parameters=(id_in_path("CodeSourceId"),),
        note="A code source that jobs used is retired.",
        since=RELEASE,
    ),
    Operation(
        "PublishCodeSource",
        "PUT",
        "api/v1/codesources/<str:CodeSourceId>/publish",
        _publish_code_source,
        scope="admin",
        parameters=(id_in_path("CodeSourceId"),),
        support=Support.IGNORED,
        note="The members of the workspace see the code source already.",
        since=RELEASE,
    ),
)
