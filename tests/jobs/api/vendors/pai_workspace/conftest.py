"""The workspace service as people see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jobs.api.vendors.pai_workspace.api import PaiWorkspace
from quotas.accounts import tokens
from quotas.models import User
from tests.jobs.api.conftest import people
from tests.jobs.api.vendors.clients import VendorClient, signed_client

__all__ = ["people"]

API = PaiWorkspace()
INVALID = (400, "InvalidParameter")
FORBIDDEN = (403, "NoPermission")
NOT_FOUND = (404, "ResourceNotFound")


def client(user: User, scopes: Iterable[str] = tokens.SCOPES) -> VendorClient:
    """Return the service as the person sees it, by an access key."""
    return signed_client(API, user, scopes)


def ids(answer: dict[str, Any], items: str, key: str) -> list[str]:
    """Return the ids in a list, whose total has to be their number."""
    found = [each[key] for each in answer[items]]
    assert answer["TotalCount"] == len(found)
    return found
