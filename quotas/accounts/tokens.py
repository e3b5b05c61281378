"""Access tokens of the native API: issued once, stored as a digest, scoped, expiring."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from quotas import audit
from quotas.models import AccessToken, Action, User

SCOPES: Final = {
    "read": _("read"),
    "submit": _("submit"),
    "stop": _("stop"),
    "exec": _("access"),
    "admin": _("admin"),
}
"""What a token may be allowed to do; its owner's rights bound it further."""

MARK: Final = "jc_"
"""How every token begins, so that one that leaked is recognised."""

USED_EVERY: Final = timedelta(minutes=1)
"""`last_used_at` is written at most this often."""


def _digest(token: str, secret_key: str) -> str:
    key = f"access-token:{secret_key}".encode()
    return hmac.new(key, token.encode(), hashlib.sha256).hexdigest()


def issue(user: User, *, name: str = "", scopes: Iterable[str], lifetime: timedelta) -> str:
    """A new token of `user`, shown this once.  ValueError for a scope that there is not."""
    wanted = sorted(set(scopes))
    if unknown := set(wanted) - set(SCOPES):
        raise ValueError(", ".join(sorted(unknown)))
    prefix = MARK + secrets.token_hex(5)
    token = f"{prefix}_{secrets.token_urlsafe(32)}"
    AccessToken.objects.create(
        user=user,
        name=name,
        prefix=prefix,
        digest=_digest(token, settings.SECRET_KEY),
        scopes=wanted,
        expires_at=timezone.now() + lifetime,
    )
    return token


def verify(token: str) -> AccessToken | None:
    """The row of a token that works now, with its user; None for any other text.  One query."""
    prefix = "_".join(token.split("_")[:2])
    row = _valid_tokens().filter(prefix=prefix).first() if prefix.isprintable() else None
    if row is None or not _fits(row, token):
        return None
    if row.last_used_at is None or row.last_used_at < timezone.now() - USED_EVERY:
        AccessToken.objects.filter(pk=row.pk).filter(
            Q(last_used_at=None) | Q(last_used_at__lt=Now() - USED_EVERY)
        ).update(last_used_at=Now())
    return row


def _fits(row: AccessToken, token: str) -> bool:
    """Whether it is that token; one that was stored under an earlier secret key is stored anew."""
    newest, *earlier = [_digest(token, key) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    if hmac.compare_digest(row.digest, newest):
        return True
    if not any(hmac.compare_digest(row.digest, digest) for digest in earlier):
        return False
    AccessToken.objects.filter(pk=row.pk).update(digest=newest)
    return True


def holder(pk: int) -> User | None:
    """Return the owner of a valid token by its key, for what outlives the request that brought it."""
    row = _valid_tokens().filter(pk=pk).first()
    return row.user if row is not None else None


def _valid_tokens() -> QuerySet[AccessToken]:
    rows = AccessToken.objects.select_related("user")
    return rows.filter(revoked_at=None, expires_at__gt=Now(), user__is_active=True)


def revoke_all(user: User) -> int:
    """End all of the person's own tokens; how many there were."""
    rows = AccessToken.objects.filter(user=user, revoked_at=None).values_list("pk", flat=True)
    return sum(revoke(user, pk) for pk in list(rows))


def revoke(user: User, pk: int) -> bool:
    """End one of the person's own tokens; whether there was one."""
    with transaction.atomic():
        token = AccessToken.objects.filter(user=user, pk=pk, revoked_at=None).first()
        revoked = AccessToken.objects.filter(user=user, pk=pk, revoked_at=None).update(revoked_at=Now())
        if token is not None and revoked:
            audit.log(Action.UPDATE, token, changes={"revoked": (False, True)})
    return bool(revoked)
