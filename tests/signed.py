"""Requests signed as Alibaba's SDK signs them, without the SDK: for load and for hostile requests."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from jobs.signatures import ACS3, SignedRequest, sign_acs3


@dataclass(frozen=True, slots=True)
class Key:
    """An access key; its secret has no place in an assertion's text."""

    key_id: str
    secret: str

    def __repr__(self) -> str:
        return f"Key({self.key_id!r})"


def acs3_headers(
    key: Key, method: str, url: str, body: bytes = b"", changes: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the headers of a request with a fresh nonce; `changes` are signed like the others."""
    parts = urlsplit(url)
    headers = {
        "host": parts.netloc,
        "accept": "application/json",
        "x-acs-version": "2020-12-03",
        "x-acs-date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "x-acs-signature-nonce": secrets.token_hex(16),
        "x-acs-content-sha256": hashlib.sha256(body).hexdigest(),
        **({"content-type": "application/json; charset=utf-8"} if body else {}),
        **(changes or {}),
    }
    names = sorted(name for name in headers if name in ("host", "content-type") or name.startswith("x-acs-"))
    request = SignedRequest(method, parts.path, parts.query, headers, body)
    signature = sign_acs3(request, names, key.secret)
    claim = f"{ACS3} Credential={key.key_id},SignedHeaders={';'.join(names)},Signature={signature}"
    return {**headers, "authorization": claim}
