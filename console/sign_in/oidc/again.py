"""Providers are asked again about people who came by them, so that what ends there ends here."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import structlog
from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from console.sign_in import providers
from console.sign_in.oidc import claims, wire
from console.sign_in.providers import Provider
from quotas import encryption
from quotas.accounts import groups, sessions
from quotas.models import AccessKey, AccessToken, Grant, SignIn, unixnames

log = structlog.get_logger(__name__)

_AT_ONCE: Final = 100
_IDLE: Final = 40
"""Whoever does nothing here is asked about this many times less often."""


def grants_due() -> QuerySet[Grant]:
    """Return the grants to refresh now: often for active people, now and then for the others."""
    interval = timedelta(seconds=settings.CONSOLE_OIDC_SECONDS)
    here = SignIn.objects.filter(user=OuterRef("user"))
    lately = {"user": OuterRef("user"), "last_used_at__gt": Now() - timedelta(minutes=10)}
    script = Exists(AccessToken.objects.filter(**lately)) | Exists(AccessKey.objects.filter(**lately))
    old, older = Q(checked_at__lt=Now() - interval), Q(checked_at__lt=Now() - interval * _IDLE)
    rows = Grant.objects.filter((old & (Exists(here) | script)) | older)
    return rows.select_related("user").order_by("checked_at")[:_AT_ONCE]


def ask_all() -> None:
    """Ask about everybody who is due; one that fails does not stop the others."""
    for grant in grants_due():
        provider = providers.find(grant.provider)
        taken = Grant.objects.filter(pk=grant.pk, checked_at=grant.checked_at).update(
            checked_at=timezone.now()
        )
        if provider is None or not taken:
            continue
        try:
            _ask(grant, provider)
        except wire.GrantRefused:
            _end(grant, provider)
        except (wire.ProviderAway, wire.NotOurs, encryption.Unreadable) as problem:
            log.warning("provider_not_asked", provider=provider.name, problem=str(problem)[:200])


def _ask(grant: Grant, provider: Provider) -> None:
    tokens = wire.refresh(provider, encryption.decrypt(grant.refresh_token))
    if tokens.get("refresh_token"):
        token = encryption.encrypt(str(tokens["refresh_token"]))
        Grant.objects.filter(pk=grant.pk).update(refresh_token=token)
    signed = wire.verify_token(provider, str(tokens["id_token"])) if tokens.get("id_token") else {}
    subject = _subject(grant)
    if signed and claims.uid_of(provider.issuer, str(signed["sub"])) != claims.uid_of(
        provider.issuer, subject
    ):
        raise wire.NotOurs("it is about somebody else")
    more = wire.userinfo(provider, str(tokens["access_token"]), subject)
    identity = provider.read_claims({**signed, **more})
    if identity.groups is not None:
        groups.learn(grant.user, provider.name, identity.groups)
    if identity.unix_name is not None:
        unixnames.learn(grant.user, provider.name, identity.unix_name)


def _subject(grant: Grant) -> str:
    account = grant.user.socialaccount_set.filter(provider=grant.provider).first()
    return str(account.extra_data.get("subject", "")) if account is not None else ""


def _end(grant: Grant, provider: Provider) -> None:
    """The sign-ins are over; so are rights by groups, where a refusal can only mean that the account is."""
    grant.delete()
    sessions.end(SignIn.objects.filter(user=grant.user, provider=provider.name), why="provider")
    if provider.lasting:
        groups.learn(grant.user, provider.name, [])
        unixnames.learn(grant.user, provider.name, "")
