"""Authentication of vendors' clients: by a request's signature, or by a token."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import Enum
from functools import partial
from typing import Final
from urllib.parse import quote

import redis
from django.http import HttpRequest
from django.utils import timezone

from jobs import signatures
from jobs.api.native.auth import Caller
from jobs.live import bus
from jobs.signatures import Claim, SignedRequest
from quotas import encryption
from quotas.accounts import access_keys, tokens
from quotas.models import AccessKey, User

WINDOW: Final = timedelta(minutes=15)
"""A request's clock may differ by so much from this one (Alibaba's own window)."""

LONGEST_VALIDITY: Final = timedelta(hours=1)
"""A bce-auth-v1 signature is accepted for so long at most, whatever it says of itself."""

LONGEST_NONCE: Final = 200
_SIGNED: Final = frozenset({"host", "x-acs-date", "x-acs-signature-nonce", "x-acs-content-sha256"})
"""Headers that an ACS3 signature has to cover; without them it could be used for another request."""
SENT_HOST: Final = "sent_host"
"""The key of an ASGI scope with the Host header that was sent, where another one took its place."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class AuthenticationFailure(Enum):
    """Why a request is not authenticated."""

    MISSING = "missing"
    MALFORMED = "malformed"
    UNSUPPORTED = "unsupported"
    UNKNOWN_KEY = "unknown_key"
    MISMATCH = "mismatch"
    STALE = "stale"
    REPLAYED = "replayed"
    INVALID_TOKEN = "invalid_token"  # noqa: S105 no password


class AuthenticationRefused(Exception):
    """The request is not authenticated; `failure` says why, `detail` may name what is wrong."""

    def __init__(self, failure: AuthenticationFailure, detail: str = "") -> None:
        super().__init__(failure.value)
        self.failure = failure
        self.detail = detail


def authenticate_alibaba(request: HttpRequest) -> Caller:
    """Return the caller by an ACS3 or ROA signature or a bearer token.  Raises AuthenticationRefused."""
    if "x-acs-bearer-token" in request.headers:
        return authenticate_token(request, request.headers["x-acs-bearer-token"])
    authorization = request.headers.get("Authorization", "")
    scheme = authorization.partition(" ")[0]
    if scheme == signatures.ACS3:
        return _by_acs3(request, signatures.parse_acs3(authorization))
    if scheme == signatures.ROA:
        return _by_roa(request, signatures.parse_roa(authorization))
    if scheme.lower() == "bearer":
        return authenticate_token(request, authorization[len("bearer") :].strip())
    failure = AuthenticationFailure.UNSUPPORTED if authorization else AuthenticationFailure.MISSING
    raise AuthenticationRefused(failure, scheme)


def authenticate_baidu(request: HttpRequest) -> Caller:
    """Return the caller by a bce-auth-v1 signature.  Raises AuthenticationRefused.

    The scheme has no nonce: a client repeats a request with the same signature after a failure.
    """
    authorization = request.headers.get("Authorization", "")
    if not authorization:
        raise AuthenticationRefused(AuthenticationFailure.MISSING)
    claim = signatures.parse_bce(authorization)
    if claim is None:
        raise AuthenticationRefused(AuthenticationFailure.MALFORMED)
    signed = signed_request(request)
    if "host" not in signatures.bce_headers(signed, claim):
        raise AuthenticationRefused(AuthenticationFailure.MALFORMED, "host")
    signed_at = _parse_iso(claim.time)
    validity = min(timedelta(seconds=claim.seconds), LONGEST_VALIDITY)
    if signed_at is None or not -WINDOW <= timezone.now() - signed_at <= validity:
        raise AuthenticationRefused(AuthenticationFailure.STALE, claim.time)
    return _verify(request, claim, partial(signatures.sign_bce, signed, claim))


def authenticate_token(request: HttpRequest, token: str) -> Caller:
    """Return the caller by an access token.  Raises AuthenticationRefused."""
    if not token:
        raise AuthenticationRefused(AuthenticationFailure.MISSING)
    row = tokens.verify(token)
    if row is None:
        raise AuthenticationRefused(AuthenticationFailure.INVALID_TOKEN)
    request.user = row.user
    request.auth = row  # type: ignore[attr-defined]  # as Django REST framework sets it
    return Caller(row.user, frozenset(row.scopes), partial(tokens.holder, row.pk))


def signed_request(request: HttpRequest) -> SignedRequest:
    """Return a request as its sender signed it."""
    scope = getattr(request, "scope", {})
    raw_path = scope.get("raw_path")
    path = raw_path.decode("ascii") if raw_path else quote(request.path, safe="/~")
    headers = {name.lower(): value for name, value in request.headers.items()}
    if SENT_HOST in scope:
        headers["host"] = scope[SENT_HOST]
    return SignedRequest(
        request.method or "GET", path, request.META.get("QUERY_STRING", ""), headers, request.body
    )


def _by_acs3(request: HttpRequest, claim: Claim | None) -> Caller:
    if claim is None:
        raise AuthenticationRefused(AuthenticationFailure.MALFORMED, "Authorization")
    if missing := _SIGNED - set(claim.headers):
        raise AuthenticationRefused(AuthenticationFailure.MALFORMED, ", ".join(sorted(missing)))
    signed = signed_request(request)
    signed_at = _parse_iso(signed.headers.get("x-acs-date", ""))
    _check_clock(signed_at, signed.headers.get("x-acs-date", ""))
    if signed.headers.get("x-acs-content-sha256") != hashlib.sha256(signed.body).hexdigest():
        raise AuthenticationRefused(AuthenticationFailure.MISMATCH, "x-acs-content-sha256")
    caller = _verify(request, claim, partial(signatures.sign_acs3, signed, claim.headers))
    _use_nonce(request, signed)
    return caller


def _by_roa(request: HttpRequest, claim: Claim | None) -> Caller:
    if claim is None:
        raise AuthenticationRefused(AuthenticationFailure.MALFORMED, "Authorization")
    signed = signed_request(request)
    text = signed.headers.get("date", "")
    _check_clock(_parse_rfc(text), text)
    if not _matches_md5(signed):
        raise AuthenticationRefused(AuthenticationFailure.MISMATCH, "content-md5")
    caller = _verify(request, claim, partial(signatures.sign_roa, signed))
    _use_nonce(request, signed)
    return caller


def _matches_md5(signed: SignedRequest) -> bool:
    """Tell whether the body is the one that Content-MD5 covers, if the header was sent."""
    sent = signed.headers.get("content-md5")
    digest = hashlib.md5(signed.body, usedforsecurity=False).digest()
    return sent is None or sent == base64.b64encode(digest).decode()


def _verify(request: HttpRequest, claim: Claim, sign: Callable[[str], str]) -> Caller:
    """Return the owner of the key if the signature is right; marks the request as theirs."""
    key = access_keys.find(claim.key_id)
    if key is None:
        raise AuthenticationRefused(AuthenticationFailure.UNKNOWN_KEY, claim.key_id)
    try:
        secret = key.reveal()
    except encryption.Unreadable:  # the key that encrypted it has left the key ring
        raise AuthenticationRefused(AuthenticationFailure.UNKNOWN_KEY, claim.key_id) from None
    if not signatures.match_signatures(sign(secret), claim.signature):
        raise AuthenticationRefused(AuthenticationFailure.MISMATCH)
    access_keys.note_use(key)
    request.user = key.user
    request.auth = key  # type: ignore[attr-defined]  # as Django REST framework sets it
    return Caller(key.user, frozenset(key.scopes), partial(_holder, key.pk))


def _holder(pk: int) -> User | None:
    return access_keys.holder(pk)


def _check_clock(signed_at: datetime | None, text: str) -> None:
    if signed_at is None or abs(timezone.now() - signed_at) > WINDOW:
        raise AuthenticationRefused(AuthenticationFailure.STALE, text or "none")


def _use_nonce(request: HttpRequest, signed: SignedRequest) -> None:
    """Refuse a nonce that was used before.

    A request that changes something is recorded in the database, so that no restart lets it in twice; one
    that only reads in Redis, and in the database while Redis is away.
    """
    nonce = signed.headers.get("x-acs-signature-nonce", "")
    if not nonce or len(nonce) > LONGEST_NONCE:
        raise AuthenticationRefused(AuthenticationFailure.MALFORMED, "x-acs-signature-nonce")
    key = getattr(request, "auth", None)
    assert isinstance(key, AccessKey)
    digest = access_keys.digest_of(key, nonce)
    fresh = _note_in_redis(digest) if request.method in _SAFE else None
    if fresh is None:
        fresh = access_keys.record_signature(digest, timezone.now() + 2 * WINDOW)
    if not fresh:
        raise AuthenticationRefused(AuthenticationFailure.REPLAYED)


def _note_in_redis(digest: str) -> bool | None:
    """Record a nonce in Redis; return whether it is new, or None while Redis is away."""
    if not bus.is_reachable():
        return None
    try:
        seconds = int(2 * WINDOW.total_seconds())
        return bool(bus.client().set(f"signature:{digest}", "1", nx=True, ex=seconds))
    except redis.RedisError as error:
        bus.note_failure(error)
        return None


def _parse_iso(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


def _parse_rfc(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
