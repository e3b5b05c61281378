"""AssumeRole of Alibaba Cloud's and of AWS's security token service, through the guarded client.

Alibaba: STS 2015-04-01 in RPC style, signed with ACS3-HMAC-SHA256, with a JSON answer.  AWS: STS 2011-06-15
in the query protocol, signed with Signature Version 4, with an XML answer, of which the four values are
read.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlsplit

from jobs.models import RamRole
from jobs.outbound import egress
from jobs.outbound.addresses import AddressError
from jobs.signatures import ACS3, SIGV4, SignedRequest, sign_acs3, sign_aws4
from quotas.encryption import Unreadable

_US: Final = "us-east-1"
_FORM: Final = "application/x-www-form-urlencoded; charset=utf-8"
_CODE: Final = re.compile(rb'(?:<Code>|"Code":\s*")([A-Za-z0-9.]{1,100})')


class StsError(Exception):
    """STS gave no credentials; the text has no secret in it."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of a role until `expires_at`, which is aware."""

    access_key_id: str
    secret: str = field(repr=False)
    token: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class StsRequest:
    """A signed request to the URL of an endpoint."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes


def assume(role: RamRole, session: str) -> Credentials:
    """Assume a role under the name of a session, of letters, digits and `-`.  Raises StsError."""
    make, read = _PROVIDERS[role.provider]
    try:
        request = make(role, session, datetime.now(UTC))
        answer = egress.request("POST", request.url, headers=request.headers, body=request.body)
    except AddressError as error:
        raise StsError(f"{error.code} {error.detail}".strip()) from error
    except Unreadable as error:
        raise StsError("unreadable") from error
    if answer.status != HTTPStatus.OK:
        code = _CODE.search(answer.body)
        raise StsError(f"{answer.status} {code[1].decode() if code else ''}".strip())
    try:
        return read(answer.body)
    except (KeyError, TypeError, ValueError) as error:
        raise StsError("answer") from error


def endpoint_of(role: RamRole) -> str:
    """Return the URL of the role's STS."""
    if role.endpoint:
        return role.endpoint.rstrip("/") + "/"
    if role.provider == RamRole.Provider.AWS:
        china = ".cn" if role.region.startswith("cn-") else ""
        return f"https://sts.{role.region or _US}.amazonaws.com{china}/"
    return f"https://sts.{role.region}.aliyuncs.com/" if role.region else "https://sts.aliyuncs.com/"


def _parameters(role: RamRole, session: str) -> dict[str, str]:
    found = {
        "RoleArn": role.arn,
        "RoleSessionName": session,
        "DurationSeconds": str(role.session_s),
    }
    return {**found, "Policy": role.policy} if role.policy else found


def _encode(parameters: Mapping[str, str]) -> str:
    """Return a query as RFC 3986 has it, which both signatures want."""
    return "&".join(f"{name}={quote(value, safe='~')}" for name, value in sorted(parameters.items()))


# --- Alibaba Cloud ---------------------------------------------------------------------------------------


def _request_alibaba(role: RamRole, session: str, now: datetime) -> StsRequest:
    url, query = endpoint_of(role), _encode(_parameters(role, session))
    headers = {
        "host": urlsplit(url).netloc,
        "x-acs-action": "AssumeRole",
        "x-acs-content-sha256": hashlib.sha256(b"").hexdigest(),
        "x-acs-date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "x-acs-signature-nonce": secrets.token_hex(16),
        "x-acs-version": "2015-04-01",
    }
    request = SignedRequest("POST", urlsplit(url).path, query, headers, b"")
    signature = sign_acs3(request, headers, role.reveal())
    names = ";".join(headers)
    claim = f"{ACS3} Credential={role.access_key_id},SignedHeaders={names},Signature={signature}"
    return StsRequest(
        f"{url}?{query}", {**headers, "accept": "application/json", "authorization": claim}, b""
    )


def _read_alibaba(body: bytes) -> Credentials:
    found = json.loads(body)["Credentials"]
    names = ("AccessKeyId", "AccessKeySecret", "SecurityToken", "Expiration")
    return _read_credentials(*(str(found[name]) for name in names))


# --- AWS -------------------------------------------------------------------------------------------------


def _request_aws(role: RamRole, session: str, now: datetime) -> StsRequest:
    url = endpoint_of(role)
    call = {"Action": "AssumeRole", "Version": "2011-06-15", **_parameters(role, session)}
    body = _encode(call).encode()
    headers = {
        "content-type": _FORM,
        "host": urlsplit(url).netloc,
        "x-amz-date": now.strftime("%Y%m%dT%H%M%SZ"),
    }
    scope = f"{now:%Y%m%d}/{role.region or _US}/sts/aws4_request"
    request = SignedRequest("POST", urlsplit(url).path, "", headers, body)
    signature = sign_aws4(request, headers, scope, role.reveal())
    names = ";".join(headers)
    claim = f"{SIGV4} Credential={role.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return StsRequest(url, {**headers, "authorization": claim}, body)


def _read_aws(body: bytes) -> Credentials:
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    return _read_credentials(*(_read_element(body.decode(), name) for name in names))


def _read_element(text: str, name: str) -> str:
    """Return the text of the answer's only element of that name; raises ValueError."""
    (found,) = re.findall(rf"<{name}>([^<]+)</{name}>", text)
    return html.unescape(found).strip()


def _read_credentials(key: str, secret: str, token: str, expiration: str) -> Credentials:
    if not (key and secret and token):
        raise ValueError("credentials")
    expires_at = datetime.fromisoformat(expiration)
    if expires_at.tzinfo is None:
        raise ValueError("expiration")
    return Credentials(key, secret, token, expires_at)


_Provider = tuple[Callable[[RamRole, str, datetime], StsRequest], Callable[[bytes], Credentials]]

_PROVIDERS: Final[Mapping[str, _Provider]] = {
    RamRole.Provider.ALIBABA: (_request_alibaba, _read_alibaba),
    RamRole.Provider.AWS: (_request_aws, _read_aws),
}
