"""Members of a workspace: giving, changing and removing roles, and who is allowed to."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from quotas.access import MANAGERS, Verb, can, role_in
from quotas.accounts import groups
from quotas.models import Membership, Role, User, Workspace

_BELOW_ADMIN: Final = (Role.VIEWER, Role.DEVELOPER, Role.OPERATOR)


class Refused(Exception):
    """It is not done; `code` is one of `REASONS` of the members' page."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def roles_to_give(actor: User, workspace: Workspace) -> tuple[Role, ...]:
    """The roles that `actor` may give there: an admin all of them, an operator all but that of an admin."""
    role = role_in(actor, workspace.pk)
    if role is Role.ADMIN:
        return tuple(Role)
    return _BELOW_ADMIN if role in MANAGERS else ()


@transaction.atomic
def change_role(actor: User, membership: Membership, role: Role, *, knowing: bool = False) -> None:
    """Raises Refused.  `knowing` says that the actor was warned that no admin would be left."""
    _may_touch(actor, membership)
    if role not in roles_to_give(actor, membership.workspace):
        raise Refused("role")
    if role is not Role.ADMIN:
        _keeps_an_admin(membership, knowing=knowing)
    membership.role = role
    membership.save(update_fields=["role"])


@transaction.atomic
def remove(actor: User, membership: Membership, *, knowing: bool = False) -> None:
    """Take somebody out of the workspace; they may always leave themselves.  Raises Refused."""
    if membership.user_id != actor.pk or membership.by_groups:
        _may_touch(actor, membership)
    _keeps_an_admin(membership, knowing=knowing)
    user = membership.user
    membership.delete()
    groups.apply([user])


def _may_touch(actor: User, membership: Membership) -> None:
    if not can(actor, Verb.MANAGE, membership.workspace):
        raise Refused("right")
    if membership.by_groups:
        raise Refused("groups")
    if membership.role not in roles_to_give(actor, membership.workspace):
        raise Refused("role")


def _keeps_an_admin(membership: Membership, *, knowing: bool) -> None:
    if membership.role != Role.ADMIN or knowing:
        return
    others = Membership.objects.filter(
        workspace=membership.workspace_id, role=Role.ADMIN, user__is_active=True
    ).exclude(pk=membership.pk)
    if not others.exists():
        raise Refused("last_admin")
