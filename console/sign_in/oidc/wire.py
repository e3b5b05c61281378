"""Asking a provider: what it publishes, tokens, what it says of somebody.  And whether a token is its own.

Every answer is bounded in time and size; what is published is cached for a while.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from typing import Any, Final

import httpx
import jwt
from django.core.cache import cache

from console.sign_in.providers import Provider

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures that only the provider can make; `none` and shared secrets are not among them."""

LEEWAY_SECONDS: Final = 60
_CACHE_SECONDS: Final = 600
_MISS_SECONDS: Final = 10
_TIMEOUT: Final = httpx.Timeout(10.0)
_MOST_BYTES: Final = 1024 * 1024


class ProviderAway(Exception):
    """It did not answer, or nothing that could be understood."""


class NotOurs(Exception):
    """A token that the provider did not make for this console, or not for this sign-in."""


class GrantRefused(Exception):
    """The provider no longer takes a refresh token."""


def discover(provider: Provider) -> Mapping[str, Any]:
    """Return the provider's metadata.  Its issuer has to be the one of the settings."""
    key = f"oidc:discovery:{provider.issuer}"
    found = cache.get(key)
    if found is None:
        found = _get(f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != provider.issuer:
            raise ProviderAway(f"{provider.issuer} calls itself {found.get('issuer')!r}.")
        cache.set(key, found, _CACHE_SECONDS)
    return found  # type: ignore[no-any-return]  # what was put there


def verify_token(
    provider: Provider, token: str, *, required: Collection[str] = ("exp", "iat", "sub")
) -> dict[str, Any]:
    """The claims of a token that the provider signed for this console.  Raises NotOurs, ProviderAway."""
    try:
        header = jwt.get_unverified_header(token)
        claims: dict[str, Any] = jwt.decode(
            token,
            _key(provider, header),
            algorithms=ALGORITHMS,
            audience=provider.client_id,
            issuer=provider.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["iss", "aud", *required]},
        )
    except (
        jwt.PyJWTError,
        TypeError,
    ) as problem:  # the latter for a key of another kind than the algorithm's
        raise NotOurs(str(problem)) from problem
    if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != provider.client_id:
        raise NotOurs("it was made for several, and first of all for another")
    return claims


def verified_sign_in(provider: Provider, token: str, nonce: str) -> dict[str, Any]:
    """The claims of an ID token that answers the question with that nonce."""
    claims = verify_token(provider, token)
    if not nonce or not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise NotOurs("it answers another sign-in")
    return claims


def _key(provider: Provider, header: Mapping[str, Any]) -> Any:
    """The provider's key that the token names; asked for anew, not too often, when it is an unknown one."""
    wanted = header.get("kid")
    for fresh in (False, True):
        keys = [
            key
            for key in _keys(provider, fresh=fresh)
            if key.public_key_use in {None, "sig"} and (wanted is None or key.key_id == wanted)
        ]
        if len(keys) == 1:
            return keys[0].key
    raise NotOurs("the provider has no such key")


def _keys(provider: Provider, *, fresh: bool) -> list[jwt.PyJWK]:
    address = str(discover(provider).get("jwks_uri", ""))
    key = f"oidc:keys:{address}"
    found = cache.get(key)
    if found is None or (fresh and cache.add(f"{key}:asked", value=True, timeout=_MISS_SECONDS)):
        found = _get(address)
        cache.set(key, found, _CACHE_SECONDS)
    try:
        return list(jwt.PyJWKSet.from_dict(found).keys)
    except jwt.PyJWTError as problem:
        raise ProviderAway(f"Its keys cannot be read: {problem}") from problem


def userinfo(provider: Provider, access_token: str, subject: str) -> dict[str, Any]:
    """Return the claims of the userinfo endpoint; empty where the provider has none."""
    address = discover(provider).get("userinfo_endpoint")
    if not address:
        return {}
    claims = _get(str(address), headers={"Authorization": f"Bearer {access_token}"})
    if claims.get("sub") != subject:
        raise NotOurs("the provider speaks of somebody else")
    return claims


def refresh(provider: Provider, refresh_token: str) -> dict[str, Any]:
    """New tokens for an old one.  Raises GrantRefused, ProviderAway."""
    data = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": provider.client_id}
    published = discover(provider)
    auth = None
    if provider.secret and by_basic(published):
        auth = httpx.BasicAuth(provider.client_id, provider.secret)
    elif provider.secret:
        data["client_secret"] = provider.secret
    try:
        with httpx.Client(timeout=_TIMEOUT) as client:
            answer = client.post(
                str(published["token_endpoint"]),
                data=data,
                auth=auth or httpx.USE_CLIENT_DEFAULT,
                headers={"Accept": "application/json"},
            )
    except (httpx.HTTPError, KeyError) as problem:
        raise ProviderAway(str(problem)) from problem
    values = _object(answer)
    if answer.status_code == httpx.codes.OK and "access_token" in values:
        return values
    refused = answer.status_code in {httpx.codes.BAD_REQUEST, httpx.codes.FORBIDDEN}
    if refused and values.get("error", "invalid_grant") == "invalid_grant":
        raise GrantRefused
    raise ProviderAway(f"It answers {answer.status_code} to a refresh token.")


def _object(answer: httpx.Response) -> dict[str, Any]:
    """The JSON object that was answered; an empty one for anything else."""
    try:
        values = answer.json()
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def by_basic(published: Mapping[str, Any]) -> bool:
    """Whether the client's secret goes into a header, as the standard's default has it."""
    return "client_secret_basic" in published.get(
        "token_endpoint_auth_methods_supported", ["client_secret_basic"]
    )


def _get(address: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    try:
        with (
            httpx.Client(timeout=_TIMEOUT) as client,
            client.stream("GET", address, headers=headers) as answer,
        ):
            answer.raise_for_status()
            body = bytearray()
            for part in answer.iter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise ProviderAway(f"{address} says more than can be meant.")
        values = httpx.Response(200, content=bytes(body)).json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as problem:
        raise ProviderAway(f"{address}: {problem}") from problem
    if not isinstance(values, dict):
        raise ProviderAway(f"{address} does not answer with a JSON object.")
    return values
