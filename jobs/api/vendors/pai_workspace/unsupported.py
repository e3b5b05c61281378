"""Operations of the service that have no meaning here, so that clients read why instead of a plain 404."""

from __future__ import annotations

from typing import Final

from jobs.api.vendors.operations import Operation, Support
from jobs.api.vendors.pai_workspace.assets import RELEASE

_LABELS: Final = "Images and datasets have no labels of their own; an image's follow from its fields."
_MEMBERS: Final = "Members and their roles are managed on the workspace's page in the console."
_MODELS: Final = "The console manages no models; store them with a job's output."
_ORDERS: Final = "The console sells no products."
_PERMISSIONS: Final = "Permissions follow from roles; they can't be listed one by one."
_RESOURCES: Final = "An admin gives workspaces their quotas in the console or in site.yaml."
_TEMPLATES: Final = "The console has no service templates; templates of jobs are on the page Templates."

_WORKSPACE: Final = "workspaces/<str:WorkspaceId>"
_MODEL: Final = "models/<str:ModelId>"
_VERSION: Final = f"{_MODEL}/versions/<str:VersionName>"
_ROLE: Final = f"{_WORKSPACE}/members/<str:MemberId>/roles/<str:RoleName>"

_ROWS: Final = (
    ("AddImageLabels", "POST", "images/<str:ImageId>/labels", _LABELS),
    ("RemoveImageLabels", "DELETE", "images/<str:ImageId>/labels/<str:LabelKey>", _LABELS),
    ("CreateDatasetLabels", "POST", "datasets/<str:DatasetId>/labels", _LABELS),
    ("DeleteDatasetLabels", "DELETE", "datasets/<str:DatasetId>/labels", _LABELS),
    ("CreateMember", "POST", f"{_WORKSPACE}/members", _MEMBERS),
    ("DeleteMembers", "DELETE", f"{_WORKSPACE}/members", _MEMBERS),
    ("AddMemberRole", "POST", _ROLE, _MEMBERS),
    ("RemoveMemberRole", "DELETE", _ROLE, _MEMBERS),
    ("ListWorkspaceUsers", "GET", f"{_WORKSPACE}/users", _MEMBERS),
    ("GetPermission", "GET", f"{_WORKSPACE}/permissions/<str:PermissionCode>", _PERMISSIONS),
    ("ListPermissions", "GET", f"{_WORKSPACE}/permissions", _PERMISSIONS),
    ("DeleteWorkspace", "DELETE", _WORKSPACE, "An admin deletes workspaces in the console."),
    (
        "UpdateDefaultWorkspace",
        "PUT",
        "defaultWorkspaces",
        "Jobs name their workspace; the default follows from the caller's quotas.",
    ),
    ("CreateWorkspaceResource", "POST", f"{_WORKSPACE}/resources", _RESOURCES),
    ("UpdateWorkspaceResource", "PUT", f"{_WORKSPACE}/resources", _RESOURCES),
    ("DeleteWorkspaceResource", "DELETE", f"{_WORKSPACE}/resources", _RESOURCES),
    ("ListProducts", "GET", "products", _ORDERS),
    ("CreateProductOrders", "POST", "productorders", _ORDERS),
    ("ListServiceTemplates", "GET", "servicetemplates", _TEMPLATES),
    ("GetServiceTemplate", "GET", "servicetemplates/<str:ServiceTemplateId>", _TEMPLATES),
    ("ListModels", "GET", "models", _MODELS),
    ("CreateModel", "POST", "models", _MODELS),
    ("GetModel", "GET", _MODEL, _MODELS),
    ("UpdateModel", "PUT", _MODEL, _MODELS),
    ("DeleteModel", "DELETE", _MODEL, _MODELS),
    ("CreateModelLabels", "POST", f"{_MODEL}/labels", _MODELS),
    ("DeleteModelLabels", "DELETE", f"{_MODEL}/labels", _MODELS),
    ("ListModelVersions", "GET", f"{_MODEL}/versions", _MODELS),
    ("CreateModelVersion", "POST", f"{_MODEL}/versions", _MODELS),
    ("GetModelVersion", "GET", _VERSION, _MODELS),
    ("UpdateModelVersion", "PUT", _VERSION, _MODELS),
    ("DeleteModelVersion", "DELETE", _VERSION, _MODELS),
    ("CreateModelVersionLabels", "POST", f"{_VERSION}/labels", _MODELS),
    ("DeleteModelVersionLabels", "DELETE", f"{_VERSION}/labels", _MODELS),
)
"""Name, method, address below api/v1/, and why."""

OPERATIONS: Final = tuple(
    Operation(
        name,
        method,
        f"api/v1/{address}",
        scope="read" if method == "GET" else "admin",
        support=Support.REFUSED,
        note=note,
        since=RELEASE,
    )
    for name, method, address, note in _ROWS
)
