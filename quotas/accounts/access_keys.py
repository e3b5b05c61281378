"""Access keys for the vendors' clients: issued, found, rotated, revoked; and signatures that were used."""

from __future__ import annotations

import hashlib
import secrets
import string
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from quotas import audit, encryption
from quotas.accounts.tokens import SCOPES, USED_EVERY
from quotas.models import AccessKey, Action, UsedSignature, User

_ALPHABET: Final = string.ascii_letters + string.digits
MARK: Final = "JCAK"
"""The start of every key id, so that one that leaked is recognised."""

GRACE: Final = timedelta(days=1)
"""A key that was rotated works so long beside the new one."""


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new access key with its secret, which is shown this once."""

    row: AccessKey
    secret: str = field(repr=False)


def issue(
    user: User, *, name: str = "", scopes: Iterable[str], lifetime: timedelta | None = None
) -> IssuedKey:
    """Issue an access key; without a `lifetime` it does not expire.  Raises ValueError for unknown scopes."""
    wanted = sorted(set(scopes))
    if unknown := set(wanted) - set(SCOPES):
        raise ValueError(", ".join(sorted(unknown)))
    secret = _random(40)
    row = AccessKey.objects.create(
        user=user,
        name=name,
        key_id=MARK + _random(12),
        ciphertext=encryption.encrypt(secret),
        scopes=wanted,
        expires_at=None if lifetime is None else timezone.now() + lifetime,
    )
    return IssuedKey(row, secret)


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _i in range(length))


def find(key_id: str) -> AccessKey | None:
    """Return the valid access key with that id, with its user; None if there is none.  One query."""
    return _valid_keys().filter(key_id=key_id).first()


def holder(pk: int) -> User | None:
    """Return the owner of a valid key by its primary key, for what outlives the request that brought it."""
    row = _valid_keys().filter(pk=pk).first()
    return row.user if row is not None else None


def _valid_keys() -> QuerySet[AccessKey]:
    in_time = Q(expires_at=None) | Q(expires_at__gt=Now())
    rows = AccessKey.objects.select_related("user")
    return rows.filter(in_time, revoked_at=None, user__is_active=True)


def note_use(key: AccessKey) -> None:
    """Record that the key was used; written at most once a minute."""
    if key.last_used_at is not None and key.last_used_at >= timezone.now() - USED_EVERY:
        return
    AccessKey.objects.filter(pk=key.pk).filter(
        Q(last_used_at=None) | Q(last_used_at__lt=Now() - USED_EVERY)
    ).update(last_used_at=Now())


def rotate(user: User, pk: int) -> IssuedKey | None:
    """Issue a new key in the place of one of the person's own, which expires after `GRACE`.

    Returns None if the person has no such key.
    """
    with transaction.atomic():
        old = _valid_keys().filter(user=user, pk=pk).first()
        if old is None:
            return None
        lifetime = None if old.expires_at is None else old.expires_at - old.created_at
        issued = issue(user, name=old.name, scopes=old.scopes, lifetime=lifetime)
        end = timezone.now() + GRACE
        old.expires_at = end if old.expires_at is None else min(end, old.expires_at)
        old.save(update_fields=["expires_at"])
    return issued


def revoke(user: User, pk: int) -> bool:
    """End one of the person's own keys; return whether there was one."""
    with transaction.atomic():
        key = AccessKey.objects.filter(user=user, pk=pk, revoked_at=None).first()
        revoked = AccessKey.objects.filter(user=user, pk=pk, revoked_at=None).update(revoked_at=Now())
        if key is not None and revoked:
            audit.log(Action.UPDATE, key, changes={"revoked": (False, True)})
    return bool(revoked)


def revoke_all(user: User) -> int:
    """End all of the person's own keys; return how many there were."""
    rows = AccessKey.objects.filter(user=user, revoked_at=None).values_list("pk", flat=True)
    return sum(revoke(user, pk) for pk in list(rows))


def digest_of(key: AccessKey, nonce: str) -> str:
    """Return the digest by which a used nonce of the key is remembered."""
    return hashlib.sha256(f"{key.key_id}\0{nonce}".encode("utf-8", "surrogatepass")).hexdigest()


def record_signature(digest: str, expires_at: datetime) -> bool:
    """Record a used signature; return False if it was used before."""
    try:
        with transaction.atomic():
            UsedSignature.objects.create(digest=digest, expires_at=expires_at)
    except IntegrityError:
        return False
    return True


def is_recorded(digest: str) -> bool:
    """Tell whether a signature was recorded as used."""
    return UsedSignature.objects.filter(digest=digest).exists()


def delete_expired_signatures() -> int:
    """Delete the signatures that would be refused by their age alone; return their number."""
    return UsedSignature.objects.filter(expires_at__lt=Now()).delete()[0]
