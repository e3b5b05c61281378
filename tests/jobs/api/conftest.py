"""People with tokens, and a way to call the API as each of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from jobs.models import Job
from jobs.states import State
from quotas.accounts import tokens
from quotas.models import Quota, Role, User
from tests.factories import make_cluster, make_job, make_quota, make_users, make_workspace

V1 = "/api/console/v1"

FIELDS = {"pointer", "line", "column", "code", "message", "params", "fix", "source", "actions"}
"""What is told of every problem and note, on the command line, over the API and to the editor."""

HELLO: dict[str, Any] = {
    "jobName": "hello",
    "taskRoles": [
        {
            "name": "main",
            "taskNumber": 1,
            "cpuNumber": 1,
            "memoryMB": 512,
            "gpuNumber": 0,
            "command": "echo hello",
        }
    ],
}
"""The smallest job file there is (OpenPAI v1)."""


def file(**changes: Any) -> str:
    """HELLO with `changes`, as text."""
    return json.dumps({**HELLO, "image": "python:3.12", **changes})


@dataclass(frozen=True)
class People:
    """`owner` and `member` share a workspace that `manager` keeps; `stranger` is elsewhere."""

    owner: User
    member: User
    manager: User
    stranger: User
    admin: User
    quota: Quota


@pytest.fixture
def people(db: None) -> People:
    owner, member, manager, stranger, admin = make_users("olga", "mei", "otto", "sam", admin="root")
    roles = {owner: Role.DEVELOPER, member: Role.DEVELOPER, manager: Role.ADMIN}
    quota = make_quota(make_workspace("vision", members=roles), make_cluster("local"), "default")
    make_workspace("speech", members={stranger: Role.DEVELOPER})
    return People(owner, member, manager, stranger, admin, quota)


@pytest.fixture
def job(people: People) -> Job:
    """A running job of `owner`."""
    return make_job(State.RUNNING, owner=people.owner, quota=people.quota, dialect="openpai-v1")


class Api:
    """The API as whoever has a token sees it."""

    def __init__(self, token: str = "", **headers: str) -> None:
        self._client = Client(raise_request_exception=False)
        self._headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **headers}

    def get(self, path: str, **query: Any) -> HttpResponse:
        address = path if path.startswith(("http", "/")) else f"{V1}/{path}"
        return self._call("get", address, query or None)

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        data = body if isinstance(body, str | bytes) else json.dumps(body)
        return self._call("post", f"{V1}/{path}", data, content_type="application/json", headers=headers)

    def delete(self, path: str) -> HttpResponse:
        return self._call("delete", f"{V1}/{path}")

    def send(self, method: str, address: str, body: str | bytes = b"") -> HttpResponse:
        """Send any JSON, or what should be some, to any address."""
        if method == "get":
            return self._call("get", address)
        return self._call(method, address, body, content_type="application/json")

    def _call(self, method: str, address: str, data: Any = None, **options: Any) -> HttpResponse:
        headers = {**self._headers, **options.pop("headers", {})}
        answer: HttpResponse = getattr(self._client, method)(address, data, headers=headers, **options)
        return answer

    def submit(self, text: str, key: str = "", **fields: Any) -> HttpResponse:
        """Submit a job file, under an Idempotency-Key perhaps."""
        return self.post("jobs", {"file": text, **fields}, **({"Idempotency-Key": key} if key else {}))


def api(user: User, scopes: Iterable[str] = tokens.SCOPES, **headers: str) -> Api:
    """The API as `user`, with a token of these scopes."""
    return Api(tokens.issue(user, scopes=scopes, lifetime=timedelta(days=1)), **headers)


def problem(response: HttpResponse) -> dict[str, Any]:
    """The problem details that `response` must be."""
    assert response.headers["Content-Type"] == "application/problem+json", response.content
    body: dict[str, Any] = json.loads(response.content)
    assert body["status"] == response.status_code
    assert body["title"]
    assert body["detail"]
    return body


def body_of(response: HttpResponse, status: int = 200) -> Any:
    """The JSON of an answer of that status."""
    assert response.status_code == status, response.content
    return json.loads(response.content)
