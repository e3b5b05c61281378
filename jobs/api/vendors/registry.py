"""The vendors' APIs that the console answers."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

from jobs.api.vendors.aihc.api import AihcV1, AihcV2
from jobs.api.vendors.api import VendorApi
from jobs.api.vendors.openpai.api import OpenPai
from jobs.api.vendors.pai_dlc.api import PaiDlc
from jobs.api.vendors.pai_workspace.api import PaiWorkspace

APIS: Final[tuple[VendorApi, ...]] = (PaiDlc(), PaiWorkspace(), AihcV1(), AihcV2(), OpenPai())
"""All of them; the first one whose prefix an address has owns it."""


def urls() -> list[URLPattern]:
    """Return the URLs of all APIs."""
    return [pattern for api in APIS for pattern in api.urls()]


def find(request: HttpRequest) -> VendorApi | None:
    """Return the API to which a request belongs, if any."""
    return next((api for api in APIS if api.owns(request)), None)


def find_by_path(path: str) -> VendorApi | None:
    """Return the API that has a path among its own, if any; AIHC's version 2 has none."""
    return next((api for api in APIS if path.startswith(api.prefixes)), None)


def refuse(request: HttpRequest, status: int, message: str) -> HttpResponse | None:
    """Return the vendor's error for what went wrong outside of an operation; None for other addresses."""
    api = find(request)
    if api is None:
        return None
    return api.render_error(request, api.describe_status(status, message), api.new_request_id())
