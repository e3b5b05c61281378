"""Workspaces and their members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404

from jobs.api.vendors.alibaba import AlibabaApi, page_slice
from jobs.api.vendors.api import ErrorKind, VendorError
from jobs.api.vendors.operations import Call, JsonObject, Kind, Location, Operation, Parameter, Support
from jobs.api.vendors.pai_workspace.assets import (
    RELEASE,
    find_default_workspace,
    find_workspace,
    id_in_path,
    invalid,
    render_time,
)
from jobs.api.vendors.pai_workspace.lists import PAGES, list_parameters, read_page, split_values
from quotas.access import administers, match_workspace, workspaces_of
from quotas.models import Membership, Role, Workspace

ENABLED: Final = "ENABLED"
PROD: Final = "prod"
ROLE_NAMES: Final = {
    Role.ADMIN: "PAI.WorkspaceAdmin",
    Role.OPERATOR: "PAI.AlgoOperator",
    Role.DEVELOPER: "PAI.AlgoDeveloper",
    Role.VIEWER: "PAI.WorkspaceGuest",
}
_COLUMNS: Final = {"GmtCreateTime": "created_at", "GmtModifiedTime": "created_at", "WorkspaceName": "name"}
_FIELDS: Final = {"slug": "WorkspaceName", "name": "DisplayName", "description": "Description"}
_ADMINS: Final = "Creator, Owner and AdminNames are the workspace's admins."


def _with_admins(rows: QuerySet[Workspace]) -> QuerySet[Workspace]:
    """Return the rows with the memberships of their admins, in the order in which they became it."""
    admins = Membership.objects.filter(role=Role.ADMIN).select_related("user").order_by("id")
    return rows.prefetch_related(Prefetch("memberships", admins, to_attr="admins"))


def _list_workspaces(call: Call) -> JsonObject:
    values = call.values
    rows = _with_admins(workspaces_of(call.person))
    if name := values["WorkspaceName"]:
        rows = rows.filter(Q(name__icontains=name) | Q(slug__icontains=name))
    if ids := split_values(values["WorkspaceIds"]):
        rows = rows.filter(slug__in=ids)
    if (values["Status"] or ENABLED) != ENABLED:
        rows = rows.none()
    found, total = read_page(call, rows, _COLUMNS)
    default = _default_of(call)
    return {"Workspaces": [_render(each, default) for each in found], "TotalCount": total}


def _default_of(call: Call) -> Workspace | None:
    try:
        return find_default_workspace(call.person)
    except Http404:
        return None


def _get_workspace(call: Call) -> JsonObject:
    found = (
        _with_admins(workspaces_of(call.person)).filter(match_workspace(call.values["WorkspaceId"])).first()
    )
    if found is None:
        raise Http404
    return {**_render(found, _default_of(call)), "DisplayName": found.name, "Owner": _owner(found)}


def _get_default_workspace(call: Call) -> JsonObject:
    default = find_default_workspace(call.person)
    found = _with_admins(Workspace.objects.all()).get(pk=default.pk)
    return {**_render(found, found), "DisplayName": found.name, "Owner": _owner(found), "Conditions": []}


def _admins(workspace: Workspace) -> list[Membership]:
    """Return the memberships that `_with_admins` loaded."""
    admins: list[Membership] = workspace.admins  # type: ignore[attr-defined]
    return admins


def _render(workspace: Workspace, default: Workspace | None) -> JsonObject:
    names = [each.user.username for each in _admins(workspace)]
    return {
        "WorkspaceId": workspace.slug,
        "WorkspaceName": workspace.name,
        "Description": workspace.description,
        "Status": ENABLED,
        "Creator": names[0] if names else "",
        "AdminNames": names,
        "EnvTypes": [PROD],
        "IsDefault": workspace == default,
        "ExtraInfos": {},
        "GmtCreateTime": render_time(workspace.created_at),
        "GmtModifiedTime": render_time(workspace.created_at),
    }


def _owner(workspace: Workspace) -> JsonObject:
    for each in _admins(workspace):
        user = each.user
        return {
            "UserId": user.username,
            "UserName": user.username,
            "DisplayName": user.get_full_name() or user.username,
            "UserKp": user.username,
        }
    return {}


def _create_workspace(call: Call) -> JsonObject:
    values = call.values
    if not administers(call.person):
        raise PermissionDenied
    slug = values["WorkspaceName"]
    name = values["DisplayName"] or slug
    workspace = Workspace(slug=slug, name=name, description=values["Description"] or "")
    if Workspace.objects.filter(slug=slug).exists():
        raise _is_taken(slug)
    _check(workspace)
    try:
        with transaction.atomic():
            workspace.save()
            Membership.objects.create(workspace=workspace, user=call.person, role=Role.ADMIN)
    except IntegrityError:
        raise _is_taken(slug) from None
    return {"WorkspaceId": slug}


def _is_taken(slug: str) -> VendorError:
    status, code = AlibabaApi.errors[ErrorKind.CONFLICT]
    return VendorError(status, code, f"The workspace {slug} exists already.")


def _update_workspace(call: Call) -> JsonObject:
    values = call.values
    workspace = find_workspace(call.person, values["WorkspaceId"])
    if not administers(call.person):
        raise PermissionDenied
    for field, name in (("name", "DisplayName"), ("description", "Description")):
        if values[name] is not None:
            setattr(workspace, field, values[name])
    _check(workspace)
    workspace.save()
    return {}


def _check(workspace: Workspace) -> None:
    """Raise VendorError for values that the table of workspaces does not take."""
    try:
        workspace.full_clean()
    except ValidationError as error:
        sentences = [
            f"{_FIELDS.get(field, field)}: {' '.join(texts)}" for field, texts in error.message_dict.items()
        ]
        raise invalid(" ".join(sentences)) from None


def _list_members(call: Call) -> JsonObject:
    values = call.values
    workspace = find_workspace(call.person, values["WorkspaceId"])
    rows = Membership.objects.filter(workspace=workspace).select_related("user").order_by("id")
    if name := values["MemberName"]:
        rows = rows.filter(user__username__icontains=name)
    if roles := split_values(values["Roles"]):
        rows = rows.filter(role__in=_roles_named(roles))
    found = [_render_member(workspace, each) for each in rows[page_slice(call)]]
    return {"Members": found, "TotalCount": rows.count()}


def _roles_named(names: Iterable[str]) -> list[Role]:
    return [role for role, name in ROLE_NAMES.items() if name in names]


def _get_member(call: Call) -> JsonObject:
    values = call.values
    workspace = find_workspace(call.person, values["WorkspaceId"])
    member, user = values["MemberId"], values["UserId"]
    username = user or (member or "").removeprefix(f"{workspace.slug}-")
    rows = Membership.objects.filter(workspace=workspace, user__username=username)
    found = rows.select_related("user").first()
    if found is None:
        raise Http404
    return _render_member(workspace, found)


def _render_member(workspace: Workspace, membership: Membership) -> JsonObject:
    user = membership.user
    return {
        "MemberId": f"{workspace.slug}-{user.username}",
        "MemberName": user.username,
        "DisplayName": user.get_full_name() or user.username,
        "UserId": user.username,
        "Roles": [ROLE_NAMES[Role(membership.role)]],
        "GmtCreateTime": render_time(membership.created_at),
    }


def _ignore_parameter(name: str, note: str, kind: Kind = Kind.TEXT) -> Parameter:
    return Parameter(name, kind, support=Support.IGNORED, note=note)


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "ListWorkspaces",
        "GET",
        "api/v1/workspaces",
        _list_workspaces,
        parameters=(
            *list_parameters(_COLUMNS),
            Parameter("WorkspaceName", note="Part of its name or id; empty: all."),
            Parameter("WorkspaceIds"),
            Parameter("Status", note=f"All workspaces are {ENABLED}."),
            _ignore_parameter("ModuleList", "There is one module, PAI."),
            _ignore_parameter("Option", "ResourceLimits are not answered."),
            _ignore_parameter("Fields", "All fields are answered."),
            _ignore_parameter("Verbose", "All fields are answered.", Kind.BOOLEAN),
        ),
        support=Support.PARTIAL,
        note=_ADMINS,
        since=RELEASE,
    ),
    Operation(
        "GetWorkspace",
        "GET",
        "api/v1/workspaces/<str:WorkspaceId>",
        _get_workspace,
        parameters=(
            id_in_path("WorkspaceId"),
            _ignore_parameter("Verbose", "All fields are answered.", Kind.BOOLEAN),
        ),
        support=Support.PARTIAL,
        note=_ADMINS,
        since=RELEASE,
    ),
    Operation(
        "GetDefaultWorkspace",
        "GET",
        "api/v1/defaultWorkspaces",
        _get_default_workspace,
        parameters=(_ignore_parameter("Verbose", "All fields are answered.", Kind.BOOLEAN),),
        support=Support.PARTIAL,
        note=f"The workspace of the caller's jobs that name none. {_ADMINS}",
        since=RELEASE,
    ),
    Operation(
        "CreateWorkspace",
        "POST",
        "api/v1/workspaces",
        _create_workspace,
        scope="admin",
        parameters=(
            Parameter("WorkspaceName", location=Location.BODY, required=True, note="Becomes the id."),
            Parameter("DisplayName", location=Location.BODY),
            Parameter("Description", location=Location.BODY),
            Parameter(
                "EnvTypes",
                Kind.LIST,
                Location.BODY,
                element=Kind.TEXT,
                support=Support.IGNORED,
                note=f"All are {PROD}.",
            ),
        ),
        support=Support.PARTIAL,
        note="Only for the console's admins. Jobs need a quota, which an admin adds.",
        since=RELEASE,
    ),
    Operation(
        "UpdateWorkspace",
        "PUT",
        "api/v1/workspaces/<str:WorkspaceId>",
        _update_workspace,
        scope="admin",
        parameters=(
            id_in_path("WorkspaceId"),
            Parameter("DisplayName", location=Location.BODY),
            Parameter("Description", location=Location.BODY),
        ),
        support=Support.PARTIAL,
        note="Only for the console's admins.",
        since=RELEASE,
    ),
    Operation(
        "ListMembers",
        "GET",
        "api/v1/workspaces/<str:WorkspaceId>/members",
        _list_members,
        parameters=(
            id_in_path("WorkspaceId"),
            *PAGES,
            Parameter("MemberName"),
            Parameter("Roles", note=", ".join(ROLE_NAMES.values())),
        ),
        since=RELEASE,
    ),
    Operation(
        "GetMember",
        "GET",
        "api/v1/workspaces/<str:WorkspaceId>/member",
        _get_member,
        parameters=(id_in_path("WorkspaceId"), Parameter("MemberId"), Parameter("UserId")),
        since=RELEASE,
    ),
)
