"""OIDC Back-Channel Logout: what a provider's logout token ends."""

from __future__ import annotations

import time
from typing import Any, Final

from django.core.cache import cache

from console.sign_in.oidc import wire
from console.sign_in.oidc.claims import uid_of
from console.sign_in.providers import Provider
from quotas.accounts import sessions
from quotas.models import Grant, SignIn

_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
_OLDEST_SECONDS: Final = 600


def end(provider: Provider, token: str) -> str:
    """End what the token says has ended; a sentence when it is not one that counts."""
    try:
        claims = wire.verify_token(provider, token, required=("iat", "jti", "events"))
    except (wire.NotOurs, wire.ProviderAway) as fault:
        return f"The logout token is not taken: {fault}."
    if problem := _problem(claims):
        return problem
    if not cache.add(f"oidc:logout:{provider.name}:{claims['jti']}", value=True, timeout=_OLDEST_SECONDS * 2):
        return "The logout token was used before."
    rows = SignIn.objects.filter(provider=provider.name)
    if sid := claims.get("sid"):
        rows = rows.filter(sid=str(sid))
    if sub := claims.get("sub"):
        rows = rows.filter(subject=uid_of(provider.issuer, str(sub)))
    if not sid:
        Grant.objects.filter(provider=provider.name, user__in=rows.values("user")).delete()
    sessions.end(rows, why="provider")
    return ""


def _problem(claims: dict[str, Any]) -> str:
    events = claims["events"]
    if not isinstance(events, dict) or not isinstance(events.get(_EVENT), dict):
        return "The logout token is about something else."
    if "nonce" in claims:
        return "The logout token is an ID token."
    if not (claims.get("sub") or claims.get("sid")):
        return "The logout token says neither whom nor what it ends."
    if claims["iat"] < time.time() - _OLDEST_SECONDS:
        return "The logout token is too old."
    return ""
