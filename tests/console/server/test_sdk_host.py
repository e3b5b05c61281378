"""Host headers of Alibaba's SDK, which are addresses; their signatures cover them as they were sent."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from http.client import HTTPResponse
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from pytest_django import Settings

from console.server.sdk_host import with_plain_host
from jobs import signatures
from jobs.api.vendors.authentication import SENT_HOST
from jobs.signatures import SignedRequest
from quotas.accounts import access_keys, tokens
from tests.factories import make_user
from tests.serving import web_server

JOBS: Final = "/api/v1/jobs"
EACH_SCHEME: Final = pytest.mark.parametrize("scheme", [signatures.ACS3, signatures.ROA])


def scope_of(host: str, path: str = JOBS) -> dict[str, Any]:
    headers = [(b"host", host.encode("latin-1")), (b"accept", b"*/*")]
    return {"path": path, "raw_path": path.encode(), "headers": headers}


@pytest.mark.parametrize(
    "host", ["http://console:8000", "https://console:8000", "console:8000/", "http://console:8000/"]
)
def test_host_with_scheme_or_slash_becomes_plain(host: str) -> None:
    found = with_plain_host(scope_of(host))

    assert found["headers"] == [(b"host", b"console:8000"), (b"accept", b"*/*")]
    assert (found["path"], found["raw_path"], found[SENT_HOST]) == (JOBS, JOBS.encode(), host)


@pytest.mark.parametrize("path", [f"/prefix{JOBS}", JOBS])
def test_prefix_of_host_is_removed_from_path(path: str) -> None:
    found = with_plain_host(scope_of("console:8000/prefix", path))

    assert (found["path"], found["raw_path"]) == (JOBS, JOBS.encode())


@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("console:8000", JOBS),
        ("console:8000:1/", JOBS),
        ("", JOBS),
        ("/", JOBS),
        ("http://", JOBS),
        ("ftp://console", JOBS),
        ("http://http://console", JOBS),
        ("console/a?b", JOBS),
        ("console/%2e", JOBS),
        ("\xff/\xff", JOBS),
        ("http://console", "/"),
        ("http://console", "/sign-in"),
        ("http://console", "/api/console/v1/jobs"),
        ("http://console", "/api/v1/aijobs"),
        ("console/prefix", "/prefix/admin/"),
        ("console/prefix", f"/other{JOBS}"),
        ("http://one.apps.example", JOBS),
        ("http://apps.example:8000/", JOBS),
        ("http://ONE.apps.example", JOBS),
        ("http://name@console", JOBS),
        ("console,other/", JOBS),
    ],
)
def test_other_host_or_path_stays(settings: Settings, host: str, path: str) -> None:
    settings.CONSOLE_APPS_DOMAIN = "apps.example"
    scope = scope_of(host, path)

    assert with_plain_host(scope) is scope


def test_ipv6_host_with_scheme_becomes_plain() -> None:
    assert with_plain_host(scope_of("http://[::1]:8000"))["headers"][0] == (b"host", b"[::1]:8000")


def test_two_hosts_stay() -> None:
    scope = scope_of("http://console")
    scope["headers"].append((b"host", b"http://other"))

    assert with_plain_host(scope) is scope


@dataclass(frozen=True, slots=True)
class Sender:
    """Whoever sends signed requests over a real socket, with any Host header."""

    at: tuple[str, int]
    key_id: str
    secret: str

    def get(self, scheme: str, host: str, target: str = JOBS, signed_path: str = JOBS) -> tuple[int, Any]:
        """Return status and body of the answer."""
        headers = {
            "host": host,
            "accept": "application/json",
            "x-acs-signature-nonce": f"nonce of {host} {scheme}",
        }
        headers |= self._dated(scheme)
        request = SignedRequest("GET", signed_path, "", headers, b"")
        headers["authorization"] = self._authorize(scheme, request)
        lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        with socket.create_connection(self.at, timeout=60) as connection:
            connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
            answer = HTTPResponse(connection)
            answer.begin()
            return answer.status, json.loads(answer.read())

    @staticmethod
    def _dated(scheme: str) -> dict[str, str]:
        now = datetime.now(UTC)
        if scheme == signatures.ROA:
            return {"date": format_datetime(now, usegmt=True)}
        digest = hashlib.sha256().hexdigest()
        return {"x-acs-date": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "x-acs-content-sha256": digest}

    def _authorize(self, scheme: str, request: SignedRequest) -> str:
        if scheme == signatures.ROA:
            return f"{scheme} {self.key_id}:{signatures.sign_roa(request, self.secret)}"
        names = sorted(request.headers)
        signature = signatures.sign_acs3(request, names, self.secret)
        return f"{scheme} Credential={self.key_id},SignedHeaders={';'.join(names)},Signature={signature}"


@pytest.fixture
def sender(transactional_db: None, settings: Settings) -> Iterator[Sender]:
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    issued = access_keys.issue(make_user(), scopes=tokens.SCOPES)
    with web_server() as url:
        yield Sender(("127.0.0.1", urlsplit(url).port or 0), issued.row.key_id, issued.secret)


@EACH_SCHEME
@pytest.mark.parametrize("host", ["127.0.0.1", "http://127.0.0.1:1", "127.0.0.1:1/", "https://127.0.0.1/"])
def test_request_signed_for_host_as_sent_is_answered(sender: Sender, scheme: str, host: str) -> None:
    status, body = sender.get(scheme, host)

    assert (status, body["Jobs"]) == (200, [])


@EACH_SCHEME
def test_request_below_prefix_of_host_is_answered(sender: Sender, scheme: str) -> None:
    status, body = sender.get(scheme, "127.0.0.1:1/prefix", f"/prefix{JOBS}")

    assert (status, body["Jobs"]) == (200, [])


@EACH_SCHEME
@pytest.mark.parametrize("host", ["foreign.example", "http://foreign.example", "foreign.example/"])
def test_request_to_foreign_host_is_refused(sender: Sender, scheme: str, host: str) -> None:
    status, body = sender.get(scheme, host)

    assert (status, body["Code"]) == (400, "InvalidParameter")


@EACH_SCHEME
def test_path_is_signed_as_it_was_sent(sender: Sender, scheme: str) -> None:
    path = f"{JOBS}/dlc1%20x~%2a%E8%AE%AD"

    assert sender.get(scheme, "127.0.0.1", path, path)[1]["Code"] == "ResourceNotFound"


@EACH_SCHEME
def test_other_path_than_signed_is_refused(sender: Sender, scheme: str) -> None:
    status, body = sender.get(scheme, "127.0.0.1", f"{JOBS}/dlc1", f"{JOBS}/dlc2")

    assert (status, body["Code"]) == (400, "SignatureDoesNotMatch")
