"""Users, groups (the console's workspaces) and storages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.http import HttpResponseBase, JsonResponse

from jobs.api.vendors.openpai import errors
from jobs.api.vendors.operations import Call, JsonObject, Location, Operation, Parameter, Support
from quotas.access import WRITERS, administers, workspaces_of
from quotas.models import Membership, Quota, User, Workspace

MOST: Final = 5000
"""Users of an answer."""


def list_users(call: Call) -> HttpResponseBase:
    """List everybody, for an admin of the console."""
    if not _is_admin(call):
        raise errors.not_an_admin()
    people = list(User.objects.filter(is_active=True).order_by("pk")[:MOST])
    return JsonResponse(_describe(people), safe=False)


def get_user(call: Call) -> JsonObject:
    """Return the caller, or anybody for an admin of the console."""
    name = call.values["username"]
    if name == call.person.get_username():
        return _describe([call.person])[0]
    if not _is_admin(call):
        raise errors.not_an_admin()
    user = User.objects.filter(username=name).first()
    if user is None:
        raise errors.no_user(name)
    return _describe([user])[0]


def _is_admin(call: Call) -> bool:
    return administers(call.person) and call.allows("admin")


def _describe(people: list[User]) -> list[dict[str, Any]]:
    """Return people with their groups and virtual clusters: two queries for all of them."""
    memberships = list(Membership.objects.filter(user__in=people).select_related("workspace"))
    slugs: dict[int, list[str]] = {}
    quotas = Quota.objects.filter(accepts_jobs=True, cluster__enabled=True)
    if not any(user.is_superuser for user in people):
        quotas = quotas.filter(workspace__in={row.workspace_id for row in memberships})
    for workspace, slug in quotas.order_by("pk").values_list("workspace_id", "slug"):
        slugs.setdefault(workspace, []).append(slug)
    found = []
    for user in people:
        mine = [row for row in memberships if row.user_id == user.pk]
        writable = slugs if user.is_superuser else [row.workspace_id for row in mine if row.role in WRITERS]
        clusters = (slug for workspace in writable for slug in slugs.get(workspace, ()))
        found.append(_render(user, [row.workspace.slug for row in mine], clusters))
    return found


def _render(user: User, groups: list[str], virtual_clusters: Iterable[str]) -> dict[str, Any]:
    return {
        "username": user.get_username(),
        "admin": administers(user),
        "email": user.email,
        "virtualCluster": list(dict.fromkeys(virtual_clusters)),
        "grouplist": groups,
        "storageConfig": [],
        "extension": {},
    }


def list_groups(call: Call) -> HttpResponseBase:
    """List the caller's workspaces as groups."""
    rows = workspaces_of(call.person).order_by("name")[:MOST]
    return JsonResponse([_render_group(row) for row in rows], safe=False)


def get_group(call: Call) -> JsonObject:
    """Return one of the caller's workspaces as a group."""
    return _render_group(_find_group(call))


def list_members(call: Call) -> HttpResponseBase:
    """List the people of one of the caller's workspaces."""
    rows = Membership.objects.filter(workspace=_find_group(call)).order_by("pk")
    names = rows.values_list("user__username", flat=True)[:MOST]
    return JsonResponse([{"username": name} for name in names], safe=False)


def _find_group(call: Call) -> Workspace:
    name = call.values["groupname"]
    found = workspaces_of(call.person).filter(slug=name).first()
    if found is None:
        raise errors.no_group(name)
    return found


def _render_group(workspace: Workspace) -> dict[str, Any]:
    return {
        "groupname": workspace.slug,
        "description": workspace.description or workspace.name,
        "externalName": "",
        "extension": {},
    }


def list_storages(_call: Call) -> HttpResponseBase:
    """List storages: the console has none by OpenPAI's names."""
    return JsonResponse([], safe=False)


def get_storage(call: Call) -> JsonObject:
    """Refuse a storage, as there is none."""
    raise errors.no_storage(call.values["storage"])


_USER: Final = (Parameter("username", location=Location.PATH, required=True),)
_GROUP: Final = (Parameter("groupname", location=Location.PATH, required=True),)
_ACCOUNTS: Final = (
    "Accounts and their rights are managed in the console, by LDAP or by the identity provider."
)
_USERS: Final = ("rest-server/api/v2/user", "rest-server/api/v2/users", "rest-server/api/v1/user")
_GROUPS: Final = ("rest-server/api/v2/group", "rest-server/api/v2/groups")
_STORAGES: Final = ("rest-server/api/v2/storage", "rest-server/api/v2/storages")
_FIELDS_OF_USERS: Final = ("password", "virtualcluster", "email", "admin", "extension", "grouplist", "group")


def _refuse(name: str, method: str, path: str, *parameters: Parameter) -> Operation:
    return Operation(
        name,
        method,
        path,
        scope="admin",
        parameters=parameters,
        support=Support.REFUSED,
        note=_ACCOUNTS,
    )


def _user_operations(mount: str) -> list[Operation]:
    one = f"{mount}/<str:username>"
    return [
        *(Operation("getAllUser", "GET", path, list_users) for path in (mount, f"{mount}/")),
        *(_refuse("createUser", "POST", path) for path in (mount, f"{mount}/")),
        *(_refuse("updateUser", "PUT", path) for path in (mount, f"{mount}/")),
        Operation("getUser", "GET", one, get_user, parameters=_USER),
        _refuse("updateUserSelf", "PUT", one, *_USER),
        _refuse("deleteUser", "DELETE", one, *_USER),
        *(
            _refuse(f"updateUser{field.title()}", "PUT", f"{one}/{field}", *_USER)
            for field in _FIELDS_OF_USERS
        ),
        _refuse("deleteUserGroup", "DELETE", f"{one}/group", *_USER),
    ]


def _group_operations(mount: str) -> list[Operation]:
    one = f"{mount}/<str:groupname>"
    return [
        Operation("getAllGroup", "GET", mount, list_groups),
        _refuse("createGroup", "POST", mount),
        _refuse("updateGroup", "PUT", mount),
        Operation("getGroup", "GET", one, get_group, parameters=_GROUP),
        _refuse("deleteGroup", "DELETE", one, *_GROUP),
        Operation("getGroupMembers", "GET", f"{one}/userlist", list_members, parameters=_GROUP),
    ]


def _storage_operations(mount: str) -> list[Operation]:
    default = Parameter("default", support=Support.IGNORED, note="There are no storages.")
    storage = Parameter("storage", location=Location.PATH, required=True)
    partial: dict[str, Any] = {
        "support": Support.PARTIAL,
        "note": "Data is mounted as the job file names it; no storage has a name of OpenPAI's.",
    }
    return [
        Operation("getStorages", "GET", mount, list_storages, parameters=(default,), **partial),
        Operation(
            "getStorage", "GET", f"{mount}/<str:storage>", get_storage, parameters=(storage,), **partial
        ),
    ]


OPERATIONS: Final[tuple[Operation, ...]] = (
    *(row for mount in _USERS for row in _user_operations(mount)),
    *(row for mount in _GROUPS for row in _group_operations(mount)),
    *(row for mount in _STORAGES for row in _storage_operations(mount)),
)
