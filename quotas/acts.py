"""What admins do beyond the everyday is written down: once, in the transaction in which it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from quotas.access import administers
from quotas.models import Act, User


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, from where, and why."""

    user: User
    address: str = ""
    why: str = ""


def actor_of(request: HttpRequest, why: str = "") -> Actor:
    """Whoever asks.  Raises PermissionDenied for whoever is no admin of the console."""
    if not isinstance(request.user, User) or not administers(request.user):
        raise PermissionDenied
    return Actor(request.user, str(request.META.get("REMOTE_ADDR", ""))[:64], why)


def write_down(actor: Actor, kind: Act.Kind, about: str, **params: Any) -> None:
    """Keep what is being done.  Raises PermissionDenied for whoever is no admin of the console."""
    if not administers(actor.user):
        raise PermissionDenied
    Act.objects.create(
        by=actor.user, address=actor.address, kind=kind, about=about[:300], why=actor.why[:500], params=params
    )
