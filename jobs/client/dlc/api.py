"""PAI-DLC's API over HTTP, each request signed with ACS3-HMAC-SHA256."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self
from urllib.parse import quote, urlencode, urlsplit

import httpx

from jobs.client.dlc.configuration import Configuration
from jobs.client.dlc.failure import UNREACHABLE, USAGE, ApiRefused
from jobs.client.failure import CommandFailure
from jobs.signatures import ACS3, SignedRequest, sign_acs3

TIMEOUT: Final = httpx.Timeout(60, connect=10)
TRIES: Final = 5
FIRST_PAUSE_S: Final = 0.5
AWAY: Final = frozenset({429, 502, 503, 504})
"""Statuses after which a request that only reads is repeated."""

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Service:
    """A service of the vendor: the first name of its hosts in the vendor's cloud, and its version.

    A console answers all of them at one address.
    """

    host: str
    version: str


DLC: Final = Service("pai-dlc", "2020-12-03")
WORKSPACES: Final = Service("aiworkspace", "2021-02-04")


class Api:
    """A connection; `call` takes the action's name, its method and its path with the ids in place."""

    def __init__(self, configuration: Configuration, service: Service = DLC) -> None:
        if not configuration.access_id or not configuration.access_key:
            raise CommandFailure("No access key. Use: dlc config --access_id ID --access_key SECRET", USAGE)
        self._configuration, self._service = configuration, service
        self._url = configuration.url.replace(f"//{DLC.host}.", f"//{service.host}.")
        self._http = httpx.Client(timeout=TIMEOUT, follow_redirects=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, action: str, path: str, **query: str) -> Answer:
        """Return the answer of an operation that reads; an outage is waited out for some seconds."""
        pause = FIRST_PAUSE_S
        for _try in range(TRIES - 1):
            response = self._send(action, "GET", path, query)
            if response is not None and response.status_code not in AWAY:
                return _read(response)
            time.sleep(pause)
            pause *= 2
        return self.call(action, "GET", path, query)

    def call(
        self, action: str, method: str, path: str, query: Mapping[str, str] | None = None, body: Any = None
    ) -> Answer:
        """Return the answer of an operation.  Raises ApiRefused, CommandFailure."""
        response = self._send(action, method, path, query or {}, body)
        if response is None:
            raise CommandFailure(f"No answer from {self._url}.", UNREACHABLE)
        return _read(response)

    def _send(
        self, action: str, method: str, path: str, query: Mapping[str, str], body: Any = None
    ) -> httpx.Response | None:
        """Send a request; None if no answer came.  A redirect is not followed: it was not signed."""
        content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        words = urlencode(query)
        url = f"{self._url}{path}" + (f"?{words}" if words else "")
        headers = self._sign(action, method, url, content)
        try:
            return self._http.request(method, url, headers=headers, content=content)
        except httpx.TransportError:
            return None

    def _sign(self, action: str, method: str, url: str, content: bytes) -> dict[str, str]:
        """Return the headers of a request, with its signature."""
        target = urlsplit(url)
        headers = {
            "host": target.netloc,
            "accept": "application/json",
            "user-agent": "dlc",
            "x-acs-version": self._service.version,
            "x-acs-action": action,
            "x-acs-date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "x-acs-signature-nonce": secrets.token_hex(16),
            "x-acs-content-sha256": hashlib.sha256(content).hexdigest(),
        }
        if content:
            headers["content-type"] = "application/json; charset=utf-8"
        names = sorted(
            name for name in headers if name.startswith("x-acs-") or name in {"host", "content-type"}
        )
        request = SignedRequest(method, target.path, target.query, headers, content)
        signature = sign_acs3(request, names, self._configuration.access_key)
        credential = f"Credential={self._configuration.access_id},SignedHeaders={';'.join(names)}"
        return {**headers, "authorization": f"{ACS3} {credential},Signature={signature}"}


def path_of(*parts: str) -> str:
    """Return the path of a resource: `path_of("jobs", id)`."""
    return "/api/v1/" + "/".join(quote(part, safe="~") for part in parts)


def _read(response: httpx.Response) -> Answer:
    """Return the JSON of an answer.  Raises ApiRefused."""
    try:
        value = response.json()
    except ValueError:
        value = None
    found: Answer = value if isinstance(value, dict) else {}
    if response.is_success and isinstance(value, dict):
        return found
    raise ApiRefused(
        response.status_code,
        str(found.get("Code") or response.reason_phrase or "UnknownError"),
        str(found.get("Message") or f"The answer of {response.url.host} is not PAI-DLC's."),
        str(found.get("RequestId") or ""),
    )
