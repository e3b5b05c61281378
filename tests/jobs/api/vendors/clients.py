"""Clients of the vendors' APIs, which sign their requests as each API wants it."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, cast
from urllib.parse import quote, unquote, urlencode, urlsplit

from django.http import HttpResponse
from django.test import Client

from jobs import signatures
from jobs.api.vendors.aihc.api import AihcApi
from jobs.api.vendors.alibaba import AlibabaApi
from jobs.api.vendors.api import VendorApi
from jobs.signatures import Claim, SignedRequest
from quotas.accounts import access_keys, tokens
from quotas.models import User

HOST: Final = "testserver"
JSON: Final = "application/json"
WRONG: Final = "wrong"
"""A secret or token that nobody has."""

Headers = dict[str, str]
Sign = Callable[[str, str, bytes], Headers]
"""Returns the headers that sign a request by method, address and body."""


class VendorClient:
    """A vendor's API as one person sees it; unsigned without one."""

    def __init__(self, api: VendorApi, sign: Sign | None = None) -> None:
        self.api = api
        self._sign = sign
        self._client = Client(raise_request_exception=False)

    def send(self, method: str, address: str, body: Any = None, **query: Any) -> HttpResponse:
        """Send a request with a JSON body; what is None is left out of the query."""
        given = {name: value for name, value in query.items() if value is not None}
        if given:
            address = f"{address}{'&' if '?' in address else '?'}{urlencode(given)}"
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        headers = {
            "Host": HOST,
            "X-API-Version": "v2",
            **(self._sign(method, address, data) if self._sign else {}),
        }
        answer: Any = self._client.generic(method, address, data, JSON, headers=headers)
        return cast("HttpResponse", answer)

    def call(self, method: str, address: str, body: Any = None, **query: Any) -> Any:
        """Return the body of a successful request."""
        answer = self.send(method, address, body, **query)
        assert answer.status_code == 200, answer.content
        return read_json(answer)

    def refusal(self, method: str, address: str, body: Any = None, **query: Any) -> tuple[int, str]:
        """Return status and code of the vendor's error."""
        return read_error(self.api, self.send(method, address, body, **query))[:2]


def read_json(answer: HttpResponse) -> Any:
    """Return the JSON of an answer."""
    assert answer.headers["Content-Type"].startswith(JSON), answer.content
    return json.loads(answer.content)


def read_error(api: VendorApi, answer: HttpResponse) -> tuple[int, str, str]:
    """Return status, code and message of the vendor's error that `answer` must be."""
    body = read_json(answer)
    names = {name.lower(): name for name in body}
    assert {"code", "message"} <= set(names), body
    if not api.name.startswith("OpenPAI"):
        assert body[names["requestid"]], body
    assert body[names["message"]], body
    return answer.status_code, body[names["code"]], body[names["message"]]


def signed_client(api: VendorApi, user: User, scopes: Iterable[str] = tokens.SCOPES) -> VendorClient:
    """Return a client with credentials of the person."""
    return VendorClient(api, _signer(api, user, scopes, is_right=True))


def wrongly_signed_client(api: VendorApi, user: User) -> VendorClient:
    """Return a client that has the id of a person's key, but not the secret."""
    return VendorClient(api, _signer(api, user, tokens.SCOPES, is_right=False))


def _signer(api: VendorApi, user: User, scopes: Iterable[str], *, is_right: bool) -> Sign:
    if not isinstance(api, AlibabaApi | AihcApi):
        token = tokens.issue(user, scopes=scopes, lifetime=timedelta(days=1)) if is_right else WRONG
        return lambda _method, _address, _body: {"Authorization": f"Bearer {token}"}
    issued = access_keys.issue(user, scopes=scopes)
    secret = issued.secret if is_right else WRONG
    scheme = acs3_headers if isinstance(api, AlibabaApi) else bce_headers
    return partial(scheme, issued.row.key_id, secret)


def acs3_headers(key_id: str, secret: str, method: str, address: str, body: bytes) -> Headers:
    """Return the headers of a request signed by ACS3-HMAC-SHA256."""
    headers = {
        "host": HOST,
        "x-acs-date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "x-acs-signature-nonce": uuid.uuid4().hex,
        "x-acs-content-sha256": hashlib.sha256(body).hexdigest(),
    }
    signature = signatures.sign_acs3(_request(method, address, headers, body), sorted(headers), secret)
    names = ";".join(sorted(headers))
    authorization = f"{signatures.ACS3} Credential={key_id},SignedHeaders={names},Signature={signature}"
    return {**headers, "Authorization": authorization}


def bce_headers(key_id: str, secret: str, method: str, address: str, body: bytes) -> Headers:
    """Return the headers of a request signed by bce-auth-v1."""
    moment, seconds = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), 1800
    claim = Claim(key_id, "", ("host",), moment, seconds)
    signature = signatures.sign_bce(_request(method, address, {"host": HOST}, body), claim, secret)
    return {"Authorization": f"{signatures.BCE}/{key_id}/{moment}/{seconds}/host/{signature}"}


def _request(method: str, address: str, headers: Mapping[str, str], body: bytes) -> SignedRequest:
    parts = urlsplit(address)
    return SignedRequest(method, quote(unquote(parts.path), safe="/~"), parts.query, headers, body)
