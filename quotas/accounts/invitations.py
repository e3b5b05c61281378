"""Invitations into workspaces: made, found by their secret, accepted once, revoked."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from quotas import audit
from quotas.accounts.groups import RANKS
from quotas.accounts.members import Refused, roles_to_give
from quotas.models import Action, Invitation, Membership, Role, User, Workspace

LIFETIME: Final = timedelta(days=7)


def _digest(secret: str, secret_key: str) -> str:
    return hmac.new(f"invitation:{secret_key}".encode(), secret.encode(), hashlib.sha256).hexdigest()


def invite(
    actor: User, workspace: Workspace, role: Role, *, email: str = "", mailed: bool = False
) -> tuple[Invitation, str]:
    """A new invitation and its secret, which is stored nowhere.  Raises Refused."""
    if role not in roles_to_give(actor, workspace):
        raise Refused("role")
    secret = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        workspace=workspace,
        role=role,
        email=email,
        mailed=mailed,
        digest=_digest(secret, settings.SECRET_KEY),
        invited_by=actor,
        expires_at=timezone.now() + LIFETIME,
    )
    return invitation, secret


def open_invitations(workspace: Workspace | None = None) -> QuerySet[Invitation]:
    """Return the invitations that can be accepted now.

    One falls with the rights of whoever made it: a person who was disabled, left or lost the role invites
    nobody any more (`find` looks).
    """
    rows = Invitation.objects.filter(accepted_at=None, revoked_at=None, expires_at__gt=Now())
    if workspace is not None:
        rows = rows.filter(workspace=workspace)
    return rows.select_related("workspace", "invited_by")


def find(secret: str) -> Invitation | None:
    """The invitation of that secret, if it can be accepted now."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    row = open_invitations().filter(digest__in=[_digest(secret, key) for key in keys]).first()
    if row is None or Role(row.role) not in roles_to_give(row.invited_by, row.workspace):
        return None
    return row


@transaction.atomic
def accept(invitation: Invitation, user: User) -> bool:
    """Let `user` in, once; whether it was this time.  Somebody who has a higher role there keeps it."""
    if not user.is_active or user.kind != User.Kind.PERSON:
        return False
    if not open_invitations().filter(pk=invitation.pk).update(accepted_at=Now(), accepted_by=user):
        return False
    audit.log(Action.UPDATE, invitation, changes={"accepted_by": ("", str(user))}, actor=user)
    role = Role(invitation.role)
    membership, new = Membership.objects.select_for_update().get_or_create(
        user=user, workspace=invitation.workspace, defaults={"role": role}
    )
    if not new and (membership.by_groups or RANKS[Role(membership.role)] < RANKS[role]):
        membership.role = max(Role(membership.role), role, key=RANKS.__getitem__)
        membership.by_groups = False
        membership.save(update_fields=["role", "by_groups"])
    return True


def revoke(workspace: Workspace, pk: int) -> bool:
    """Whether there was one to revoke."""
    row = open_invitations(workspace).filter(pk=pk).first()
    if row is None:
        return False
    row.revoked_at = timezone.now()
    row.save(update_fields=["revoked_at"])
    return True
