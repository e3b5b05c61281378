"""OpenPAI's API as each of the people calls it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, TypeAlias

import pytest
from django.http import HttpResponse
from django.test import Client

from jobs.api.vendors.openpai.tokens import SCOPES
from quotas.accounts import tokens
from quotas.models import User

ROOT = "/rest-server/api"


class Pai:
    """The API as whoever has a token sees it; without one, as a stranger to the console."""

    def __init__(self, token: str = "") -> None:
        self.token = token
        self._client = Client(raise_request_exception=False)

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self._send("get", path, query or None)

    def post(self, path: str, body: Any, content_type: str = "application/json") -> HttpResponse:
        return self._send("post", path, _text(body), content_type=content_type)

    def put(self, path: str, body: Any, content_type: str = "application/json") -> HttpResponse:
        return self._send("put", path, _text(body), content_type=content_type)

    def delete(self, path: str, body: Any = None) -> HttpResponse:
        return self._send("delete", path, _text(body), content_type="application/json")

    def send(self, method: str, address: str, body: str = "") -> HttpResponse:
        """Send what should be JSON to any address."""
        if method == "GET":
            return self._send("get", address, None)
        return self._send(method.lower(), address, body, content_type="application/json")

    def _send(self, method: str, path: str, data: Any, **options: Any) -> HttpResponse:
        address = path if path.startswith(("/rest-server", "http")) else f"{ROOT}/{path}"
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        answer: HttpResponse = getattr(self._client, method)(address, data, headers=headers, **options)
        return answer


def _text(body: Any) -> str:
    return body if isinstance(body, str) else "" if body is None else json.dumps(body)


PaiOf: TypeAlias = Callable[..., Pai]


@pytest.fixture
def pai() -> PaiOf:
    """Return a function that makes the API as a user with a token of some scopes."""

    def make(user: User | None = None, scopes: Iterable[str] = SCOPES) -> Pai:
        if user is None:
            return Pai()
        return Pai(tokens.issue(user, scopes=scopes, lifetime=timedelta(hours=1)))

    return make


def error_of(response: HttpResponse, status: int) -> tuple[str, str]:
    """Return code and message of an error, which has to have OpenPAI's shape."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/json"
    body = json.loads(response.content)
    assert set(body) == {"code", "message"}
    return body["code"], body["message"]
