"""Signed requests to both versions of the AIHC API."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import urlencode

import pytest
from django.http import HttpResponse
from django.test import Client

from jobs import signatures
from jobs.signatures import Claim, SignedRequest
from quotas.accounts import access_keys, tokens
from quotas.models import User
from tests.jobs.api.conftest import People

HOST = "testserver"

BODY: dict[str, Any] = {
    "name": "api-0513-2",
    "jobType": "PyTorchJob",
    "command": "sleep 1d",
    "jobSpec": {
        "replicas": 1,
        "image": "registry.baidubce.com/aihc-aiak/aiak-megatron:ubuntu20.04",
        "resources": [{"name": "cpu", "quantity": 1}, {"name": "memory", "quantity": "1"}],
        "envs": [{"name": "NCCL_DEBUG", "value": "DEBUG"}],
    },
}
"""A small CreateJob body."""


class Aihc:
    """The API as the holder of an access key calls it."""

    def __init__(self, key_id: str, secret: str) -> None:
        self.key_id = key_id
        self.secret = secret
        self._client = Client(raise_request_exception=False)

    def authorization(
        self,
        method: str,
        path: str,
        query: str = "",
        *,
        headers: tuple[str, ...] = ("host",),
        signed_at: datetime | None = None,
        seconds: int = 1800,
    ) -> str:
        """Return a signature for a request with a Host header and nothing else that is signed."""
        moment = (signed_at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
        claim = Claim(self.key_id, "", headers, moment, seconds)
        request = SignedRequest(method, path, query, {"host": HOST}, b"")
        signature = signatures.sign_bce(request, claim, self.secret)
        return f"bce-auth-v1/{self.key_id}/{moment}/{seconds}/{';'.join(headers)}/{signature}"

    def send(
        self, method: str, path: str, body: Any = None, *, authorization: str = "", **query: Any
    ) -> HttpResponse:
        """Send a request, signed unless it is already."""
        text = urlencode(query)
        data = body if isinstance(body, str | bytes) else "" if body is None else json.dumps(body)
        answer = self._client.generic(
            method,
            f"{path}?{text}",
            data,
            content_type="application/json",
            headers={"Host": HOST, "Authorization": authorization or self.authorization(method, path, text)},
        )
        return cast("HttpResponse", answer)

    def v2(self, action: str, body: Any = None, *, authorization: str = "", **query: Any) -> HttpResponse:
        """Call an operation of version 2, by GET without a body."""
        method = "GET" if body is None else "POST"
        return self.send(method, "/", body, authorization=authorization, action=action, **query)

    def create(self, body: Any = None, **query: Any) -> str:
        """Create a job; return its id."""
        answer = self.v2(
            "CreateJob", body or BODY, **{"resourcePoolId": "local", "queueID": "default", **query}
        )
        return str(read(answer)["jobId"])


def read(answer: HttpResponse, status: int = 200) -> Any:
    """Return the JSON of an answer of that status, which has a request id."""
    assert answer.status_code == status, answer.content
    body = json.loads(answer.content)
    assert body["requestId"]
    return body


def refused(answer: HttpResponse, status: int, code: str) -> str:
    """Return the message of an error, which has all three keys that clients read."""
    body = read(answer, status)
    assert set(body) == {"code", "message", "requestId"}
    assert body["code"] == code, body
    assert body["message"]
    return str(body["message"])


def as_user(user: User, *scopes: str) -> Aihc:
    """Return the API as a person calls it with a new access key."""
    issued = access_keys.issue(user, scopes=scopes or tokens.SCOPES, lifetime=timedelta(days=1))
    return Aihc(issued.row.key_id, issued.secret)


@pytest.fixture
def owner(people: People) -> Aihc:
    return as_user(people.owner)
