"""Access rules: the only module that decides a right.

Members of a workspace see its jobs' names, states, resources and reasons; file, logs, events,
endpoints and control belong to the owner and the workspace's admins, unless the owner made the job
public in the workspace (DLC's Accessibility).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Protocol, TypeVar

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from quotas.models import Membership, Role, User, Workspace

Visitor = User | AnonymousUser
"""Whoever a request comes from."""


class Verb(StrEnum):
    """An action on a workspace, or on a thing that belongs to a person in one.

    To MANAGE is to say who belongs to a workspace; nobody's own thing is managed.
    """

    LIST = "list"
    READ = "read"
    CONTROL = "control"
    ENTER = "enter"
    MANAGE = "manage"


class Owned(Protocol):
    """Anything with an owner, a workspace and an openness."""

    owner_id: int
    workspace_id: int

    @property
    def is_public(self) -> bool: ...


T = TypeVar("T", bound=Owned)

WRITERS = frozenset({Role.DEVELOPER, Role.OPERATOR, Role.ADMIN})
MANAGERS = frozenset({Role.OPERATOR, Role.ADMIN})


def is_active(user: Visitor) -> bool:
    """Whether `user` is somebody whose account works."""
    return bool(user.is_authenticated and user.is_active)


def administers(user: Visitor) -> bool:
    """Whether `user` runs the console: acts on everybody's jobs, on nodes and on the whole console."""
    return isinstance(user, User) and is_active(user) and user.is_superuser


def workspaces_of(user: Visitor) -> QuerySet[Workspace]:
    """The workspaces whose members see each other: all of them for a superuser."""
    if not isinstance(user, User) or not is_active(user):
        return Workspace.objects.none()
    if user.is_superuser:
        return Workspace.objects.all()
    return Workspace.objects.filter(memberships__user=user)


def match_workspace(name: str, path: str = "") -> Q:
    """Return the condition for the workspace of a short name, or of a vendor's id, which is not empty.

    `path` leads from the row to its workspace: `workspace__`.
    """
    return Q(**{f"{path}slug": name}) | Q(**{f"{path}vendor_id": name})


def administered_by(user: Visitor) -> QuerySet[Workspace]:
    """The workspaces that the person is an admin of: all of them for a superuser."""
    if not isinstance(user, User) or not is_active(user):
        return Workspace.objects.none()
    if user.is_superuser:
        return Workspace.objects.all()
    return Workspace.objects.filter(memberships__user=user, memberships__role=Role.ADMIN)


def managed_by(user: Visitor) -> QuerySet[Workspace]:
    """The workspaces in which the person may see everybody's use: all of them for a superuser."""
    if not isinstance(user, User) or not is_active(user):
        return Workspace.objects.none()
    if user.is_superuser:
        return Workspace.objects.all()
    return Workspace.objects.filter(memberships__user=user, memberships__role__in=MANAGERS)


def role_in(user: Visitor, workspace_id: int) -> Role | None:
    """The person's role there; a superuser is an admin everywhere; None for strangers."""
    if not isinstance(user, User) or not is_active(user):
        return None
    if user.is_superuser:
        return Role.ADMIN
    role = Membership.objects.filter(user=user, workspace_id=workspace_id).values_list("role", flat=True)
    return Role(found) if (found := role.first()) else None


def may_submit(user: Visitor, workspace_id: int) -> bool:
    """Whether the person may start jobs in the workspace."""
    return role_in(user, workspace_id) in WRITERS


def may_submit_in(user: Visitor) -> QuerySet[Workspace]:
    """The workspaces in which the person may start jobs; for a superuser their own, or else all of them."""
    if not isinstance(user, User) or not is_active(user):
        return Workspace.objects.none()
    if user.is_superuser:
        own = Workspace.objects.filter(memberships__user=user)
        return own if own.exists() else Workspace.objects.all()
    return Workspace.objects.filter(memberships__user=user, memberships__role__in=WRITERS)


def can(user: Visitor, verb: Verb, thing: Owned | Workspace) -> bool:
    """Whether `user` may do `verb` with `thing`; one query at most."""
    if isinstance(thing, Workspace):
        return _allows_workspace(role_in(user, thing.pk), verb)
    return _allows(role_in(user, thing.workspace_id), user, verb, thing)


def rights(user: Visitor, thing: Owned) -> frozenset[Verb]:
    """Everything that `user` may do with `thing`; one query at most."""
    role = role_in(user, thing.workspace_id)
    return frozenset(verb for verb in Verb if _allows(role, user, verb, thing))


def those(user: Visitor, verb: Verb, things: Iterable[T]) -> list[T]:
    """The ones of `things` with which `user` may do `verb`; one query, however many there are."""
    rows = list(things)
    wanted = {thing.workspace_id for thing in rows}
    roles = roles_in(user, wanted) if wanted else {}
    return [thing for thing in rows if _allows(roles.get(thing.workspace_id), user, verb, thing)]


def roles_in(user: Visitor, workspace_ids: Collection[int]) -> Mapping[int, Role]:
    """`role_in` for many workspaces at once; those where the person is a stranger are absent."""
    if not isinstance(user, User) or not is_active(user):
        return {}
    if user.is_superuser:
        return dict.fromkeys(workspace_ids, Role.ADMIN)
    rows = Membership.objects.filter(user=user, workspace_id__in=workspace_ids)
    return {workspace: Role(role) for workspace, role in rows.values_list("workspace_id", "role")}


def _allows_workspace(role: Role | None, verb: Verb) -> bool:
    """Members see who is there and what there is; who belongs to it is for those who keep it."""
    if role is None:
        return False
    return verb in {Verb.LIST, Verb.READ} or role in MANAGERS


def _allows(role: Role | None, user: Visitor, verb: Verb, thing: Owned) -> bool:
    if role is None or verb is Verb.MANAGE:
        return False
    if verb is Verb.LIST:
        return True
    mine = isinstance(user, User) and thing.owner_id == user.pk
    if mine or role in MANAGERS:
        return verb is Verb.READ or role in WRITERS
    return verb is Verb.READ and thing.is_public
