"""Signatures of requests that Alibaba's own SDKs sent, recorded at a socket, and of botocore's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials as BotoCredentials  # type: ignore[import-untyped]

from jobs import signatures
from jobs.signatures import Claim, SignedRequest

SECRET: Final = "secret/+example"
KEY_ID: Final = "JCAKexample"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request of the SDK, with the signature that it sent."""

    title: str
    request: SignedRequest

    @property
    def authorization(self) -> str:
        return self.request.headers["authorization"]

    @property
    def claim(self) -> Claim:
        found = signatures.parse_acs3(self.authorization) or signatures.parse_roa(self.authorization)
        assert found is not None
        return found

    def sign(self, request: SignedRequest, secret: str = SECRET) -> str:
        """Return the signature of a request in the scheme of this one."""
        if self.authorization.startswith(signatures.ACS3):
            return signatures.sign_acs3(request, self.claim.headers, secret)
        return signatures.sign_roa(request, secret)


def _read(row: Mapping[str, Any]) -> Recorded:
    method, target, _version = row["line"].split(" ")
    path, _mark, query = target.partition("?")
    request = SignedRequest(method, path, query, row["headers"], row["body"].encode())
    return Recorded(f"{row['client']}-{row['operation']}", request)


ROWS: Final = [
    _read(row) for row in json.loads((Path(__file__).parent / "alibaba_requests.json").read_text())
]
EACH: Final = pytest.mark.parametrize("recorded", ROWS, ids=[row.title for row in ROWS])


@EACH
def test_signature_of_real_request_is_computed(recorded: Recorded) -> None:
    assert recorded.claim.key_id == KEY_ID
    assert recorded.sign(recorded.request) == recorded.claim.signature


@EACH
def test_signature_of_changed_request_differs(recorded: Recorded) -> None:
    request, right = recorded.request, recorded.claim.signature
    nonce = {**request.headers, "x-acs-signature-nonce": "another"}
    changed = [
        replace(request, method="PATCH"),
        replace(request, path=f"{request.path}x"),
        replace(request, query=f"{request.query}&ShowOwn=False"),
        replace(request, query=request.query.replace("a+b", "a%2Bb") or "x"),
        replace(request, headers=nonce),
    ]

    assert right not in {recorded.sign(each) for each in changed}
    assert recorded.sign(request, "another") != right


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "ACS3-HMAC-SHA256",
        "ACS3-HMAC-SHA256 Credential=,SignedHeaders=host,Signature=" + "0" * 64,
        "ACS3-HMAC-SHA256 Credential=a,SignedHeaders=host,Signature=" + "g" * 64,
        "ACS3-HMAC-SHA256 Credential=a,SignedHeaders=host,Signature=" + "0" * 63,
        "ACS3-HMAC-SHA256 Credential=a,SignedHeaders=,Signature=" + "0" * 64,
        "ACS3-HMAC-SHA256 Credential=a\0b,SignedHeaders=host,Signature=" + "0" * 64,
        "ACS3-HMAC-SHA256 Credential=é,SignedHeaders=host,Signature=" + "0" * 64,
        "ACS4-HMAC-SHA256 Credential=a,SignedHeaders=host,Signature=" + "0" * 64,
        "acs",
        "acs a",
        "acs a:",
        "acs a:b",
        "acs :" + "A" * 27 + "=",
        "acs a:" + "A" * 28,
        "acs a\0b:" + "A" * 27 + "=",
        "acs é:" + "A" * 27 + "=",
        "acs a:" + "-" * 27 + "=",
    ],
)
def test_parser_of_malformed_header_returns_none(authorization: str) -> None:
    assert signatures.parse_acs3(authorization) is None
    assert signatures.parse_roa(authorization) is None


def test_aws4_signature_equals_botocores() -> None:
    url, body = "https://sts.eu-west-1.amazonaws.com/", b"Action=AssumeRole&RoleArn=arn%3Aaws"
    theirs = AWSRequest("POST", url, {"content-type": "text/plain"}, body)
    SigV4Auth(BotoCredentials("AKIATEST", "wJalr/secret+key"), "sts", "eu-west-1").add_auth(theirs)
    headers = {name.lower(): value for name, value in theirs.headers.items()}
    headers["host"] = "sts.eu-west-1.amazonaws.com"
    scope = f"{headers['x-amz-date'][:8]}/eu-west-1/sts/aws4_request"
    request = SignedRequest("POST", "/", "", headers, body)
    names = ("content-type", "host", "x-amz-date")
    assert headers["authorization"] == (
        f"{signatures.SIGV4} Credential=AKIATEST/{scope}, SignedHeaders={';'.join(names)}, "
        f"Signature={signatures.sign_aws4(request, names, scope, 'wJalr/secret+key')}"
    )
