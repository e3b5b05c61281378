"""The record of admin actions, written in the transaction of the action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest

from quotas import audit
from quotas.access import administers
from quotas.models import AdminAction, User
from quotas.models.audit import Action

Changes: TypeAlias = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Actor:
    """An admin who acts, with address and reason."""

    user: User
    address: str = ""
    why: str = ""


def actor_of(request: HttpRequest, why: str = "") -> Actor:
    """Return the admin of a request.  Raises PermissionDenied for anybody else."""
    if not isinstance(request.user, User) or not administers(request.user):
        raise PermissionDenied
    return Actor(request.user, str(request.META.get("REMOTE_ADDR", ""))[:64], why)


@transaction.atomic
def write_down(
    actor: Actor,
    kind: AdminAction.Kind,
    about: str,
    *,
    to: models.Model | None = None,
    name: str = "",
    changes: Changes | None = None,
    **params: Any,
) -> None:
    """Record an admin action, also in the audit log.

    `to` is the one row to which it is done, if it is one; `name` is its name in the audit log where that is
    not `about`; `changes` has (before, after) for each field.  Raises PermissionDenied for whoever is no
    admin of the console.
    """
    if not administers(actor.user):
        raise PermissionDenied
    AdminAction.objects.create(
        by=actor.user, address=actor.address, kind=kind, about=about[:300], why=actor.why[:500], params=params
    )
    new = {field: (old, now) for field, (old, now) in (changes or {}).items() if old != now}
    details = {**params, "kind": kind.value, "why": actor.why}
    audit.log(Action.ACT, to, changes=new, details=details, actor=actor.user, name=name or about)
