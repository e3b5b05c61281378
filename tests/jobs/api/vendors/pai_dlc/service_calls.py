"""Calls of PAI-DLC's services as a person with an access token."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse

from quotas.accounts import tokens
from quotas.models import User
from tests.jobs.api.conftest import Api, api, body_of

ROOT = "/api/v1/"


class Dlc:
    """PAI-DLC as one person sees it."""

    def __init__(self, user: User, scopes: Iterable[str] = tokens.SCOPES) -> None:
        self._api: Api = api(user, scopes)

    def send(self, method: str, path: str, body: Any = None, **query: Any) -> HttpResponse:
        """Send a request; what is None is left out of the query."""
        given = {name: value for name, value in query.items() if value is not None}
        address = ROOT + path + (f"?{urlencode(given)}" if given else "")
        return self._api.send(method, address, json.dumps(body) if body is not None else b"")

    def get(self, path: str, **query: Any) -> Any:
        """Return the body of a successful GET."""
        return body_of(self.send("get", path, **query))

    def post(self, path: str, body: Any) -> Any:
        """Return the body of a successful POST."""
        return body_of(self.send("post", path, body))

    def put(self, path: str, body: Any = None, **query: Any) -> Any:
        """Return the body of a successful PUT."""
        return body_of(self.send("put", path, body, **query))

    def delete(self, path: str, **query: Any) -> Any:
        """Return the body of a successful DELETE."""
        return body_of(self.send("delete", path, **query))

    def refusal(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, str]:
        """Return status and code of the vendor's error."""
        return error_of(self.send(method, path, body, **query))


def error_of(response: HttpResponse) -> tuple[int, str]:
    """Return status and code of the vendor's error that `response` must be."""
    assert response.headers["Content-Type"] == "application/json", response.content
    found = json.loads(response.content)
    assert set(found) == {"RequestId", "Code", "Message", "HostId"}
    assert found["Message"]
    return response.status_code, found["Code"]
