"""Service accounts: scripts with a name, a workspace, tokens, access keys and a contact, but no sign-in."""

from __future__ import annotations

from django.db import transaction

from quotas.accounts import access_keys, tokens
from quotas.accounts.members import Refused, roles_to_give
from quotas.models import Membership, Role, ServiceAccount, User, Workspace


@transaction.atomic
def make(
    actor: User, workspace: Workspace, name: str, *, role: Role, contact: str, about: str = ""
) -> ServiceAccount:
    """A new service account that works in `workspace`.  Raises Refused; the name has to be free."""
    if role not in roles_to_give(actor, workspace):
        raise Refused("role")
    user = User(username=name, kind=User.Kind.SERVICE)
    user.set_unusable_password()
    user.save()
    Membership.objects.create(user=user, workspace=workspace, role=role)
    return ServiceAccount.objects.create(
        user=user, workspace=workspace, contact=contact, about=about, made_by=actor
    )


def set_active(account: ServiceAccount, *, active: bool) -> None:
    """Disable it, with all its tokens and access keys until it is enabled again."""
    account.user.is_active = active
    account.user.save(update_fields=["is_active"])


def revoke_token(account: ServiceAccount, pk: int) -> bool:
    """End one of its tokens; whether there was one."""
    return tokens.revoke(account.user, pk)


def rotate_key(account: ServiceAccount, pk: int) -> access_keys.IssuedKey | None:
    """Issue an access key in the place of one of the account's; None if it has no such key."""
    return access_keys.rotate(account.user, pk)


def revoke_key(account: ServiceAccount, pk: int) -> bool:
    """End one of the account's access keys; return whether there was one."""
    return access_keys.revoke(account.user, pk)
