"""Signatures of requests: Alibaba's ACS3-HMAC-SHA256 and ROA HMAC-SHA1, Baidu's bce-auth-v1, AWS's SigV4.

Each scheme that callers of the console use has `parse_…`, which reads the header; each has `sign_…`, which
computes the signature that a request should have.  Nothing here knows keys or clocks.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote, unquote

ACS3: Final = "ACS3-HMAC-SHA256"
ROA: Final = "acs"
BCE: Final = "bce-auth-v1"
SIGV4: Final = "AWS4-HMAC-SHA256"

_KEY: Final = r"[A-Za-z0-9._-]+"
_ACS3: Final = re.compile(
    rf"{ACS3} +Credential=(?P<key>{_KEY}), *SignedHeaders=(?P<headers>[^,\s]+)"
    r", *Signature=(?P<signature>[0-9a-f]{64})"
)
_ROA: Final = re.compile(rf"{ROA} (?P<key>{_KEY}):(?P<signature>[A-Za-z0-9+/]{{27}}=)")
_BCE: Final = re.compile(
    rf"{BCE}/(?P<key>{_KEY})/(?P<time>[0-9TZ:-]{{20}})/(?P<seconds>[0-9]{{1,9}})"
    r"/(?P<headers>[^/\s]*)/(?P<signature>[0-9a-f]{64})"
)


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request as it was sent: `path` is percent-encoded, `headers` have lower-case names."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Claim:
    """What an Authorization header claims: key id, signature, and the names of the signed headers.

    `time` and `seconds` are bce-auth-v1's own: when it was signed, and how long it is valid.
    """

    key_id: str
    signature: str
    headers: tuple[str, ...] = ()
    time: str = ""
    seconds: int = 0


def parse_acs3(authorization: str) -> Claim | None:
    """Return what an ACS3-HMAC-SHA256 header claims; None if it is malformed."""
    match = _ACS3.fullmatch(authorization.strip())
    if match is None:
        return None
    return Claim(match["key"], match["signature"], tuple(match["headers"].lower().split(";")))


def sign_acs3(request: SignedRequest, headers: Iterable[str], secret: str) -> str:
    """Return the ACS3-HMAC-SHA256 signature, in hexadecimal, over the named headers.

    The query is sorted by key; values are decoded and quoted again, keys stay as they were decoded.
    """
    names = list(headers)
    pairs = sorted(parse_qsl(request.query, keep_blank_values=True), key=lambda pair: pair[0])
    canonical = "\n".join(
        [
            request.method,
            request.path,
            "&".join(f"{key}={quote(value, safe='~')}" for key, value in pairs),
            *(f"{name}:{request.headers.get(name, '').strip()}" for name in names),
            "",
            ";".join(names),
            request.headers.get("x-acs-content-sha256", ""),
        ]
    )
    text = f"{ACS3}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def parse_roa(authorization: str) -> Claim | None:
    """Return what a ROA header (`acs KEY:SIGNATURE`) claims; None if it is malformed."""
    match = _ROA.fullmatch(authorization.strip())
    return Claim(match["key"], match["signature"]) if match else None


def sign_roa(request: SignedRequest, secret: str) -> str:
    """Return the ROA HMAC-SHA1 signature, in base64.

    The path is signed as it is sent, the values of the query as they were before they were encoded.
    All `x-acs-` headers are covered; the body is covered by Content-MD5 alone, which clients don't send.
    Asynchronous clients add a Content-Type to requests without a body after they have signed them.
    """
    headers = request.headers
    pairs = sorted(parse_qsl(request.query, keep_blank_values=True))
    query = "&".join(f"{key}={value}" if value else key for key, value in pairs)
    text = "\n".join(
        [
            request.method,
            headers.get("accept", ""),
            headers.get("content-md5", ""),
            headers.get("content-type", "") if request.body else "",
            headers.get("date", ""),
            *(f"{name}:{headers[name]}" for name in sorted(headers) if name.startswith("x-acs-")),
            f"{request.path}?{query}" if query else request.path,
        ]
    )
    digest = hmac.new(secret.encode(), text.encode(), hashlib.sha1).digest()
    return base64.b64encode(digest).decode()


def parse_bce(authorization: str) -> Claim | None:
    """Return what a bce-auth-v1 header claims; None if it is malformed."""
    match = _BCE.fullmatch(authorization.strip())
    if match is None:
        return None
    names = tuple(match["headers"].lower().split(";")) if match["headers"] else ()
    return Claim(match["key"], match["signature"], names, match["time"], int(match["seconds"]))


_ALWAYS_SIGNED: Final = ("host", "content-length", "content-type", "content-md5")


def bce_headers(request: SignedRequest, claim: Claim) -> tuple[str, ...]:
    """Return the names of the headers that a bce-auth-v1 signature covers, listed in it or by default."""
    if claim.headers:
        return claim.headers
    return tuple(name for name in request.headers if name in _ALWAYS_SIGNED or name.startswith("x-bce-"))


def sign_bce(request: SignedRequest, claim: Claim, secret: str) -> str:
    """Return the bce-auth-v1 signature, in hexadecimal; the body is not covered."""
    prefix = f"{BCE}/{claim.key_id}/{claim.time}/{claim.seconds}"
    # The key of the second HMAC is the hexadecimal text of the first one.
    key = hmac.new(secret.encode(), prefix.encode(), hashlib.sha256).hexdigest()
    query = sorted(
        f"{_encode(name)}={_encode(value)}"
        for name, value in parse_qsl(request.query, keep_blank_values=True)
        if name.lower() != "authorization"
    )
    values = {name: request.headers.get(name, "").strip() for name in bce_headers(request, claim)}
    canonical = "\n".join(
        [
            request.method,
            quote(unquote(request.path), safe="/-_.~"),
            "&".join(query),
            "\n".join(sorted(f"{_encode(name)}:{_encode(value)}" for name, value in values.items() if value)),
        ]
    )
    return hmac.new(key.encode(), canonical.encode(), hashlib.sha256).hexdigest()


def _encode(text: str) -> str:
    return quote(text, safe="-_.~")


def match_signatures(one: str, other: str) -> bool:
    """Compare two signatures in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def sign_aws4(request: SignedRequest, headers: Iterable[str], scope: str, secret: str) -> str:
    """Return the AWS Signature Version 4, in hexadecimal, of a request without a query.

    `headers` names the signed ones, with x-amz-date; `scope` is `<date>/<region>/<service>/aws4_request`.
    """
    names = list(headers)
    canonical = "\n".join(
        [
            request.method,
            request.path,
            "",
            *(f"{name}:{request.headers[name].strip()}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(request.body).hexdigest(),
        ]
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"{SIGV4}\n{request.headers['x-amz-date']}\n{scope}\n{digest}"
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
