"""OpenPAI's REST server under a host name of its own."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings

from console.server.openpai_host import with_prefix


def scope_of(host: str, path: str) -> dict[str, Any]:
    return {"path": path, "raw_path": path.encode(), "headers": [(b"host", host.encode())]}


@pytest.mark.parametrize("host", ["pai.example", "PAI.example", "pai.example:9186"])
def test_path_under_openpai_host_gets_prefix(settings: LazySettings, host: str) -> None:
    settings.CONSOLE_OPENPAI_HOST = "pai.example"
    found = with_prefix(scope_of(host, "/api/v1/jobs"))
    assert (found["path"], found["raw_path"]) == ("/rest-server/api/v1/jobs", b"/rest-server/api/v1/jobs")
    again = scope_of(host, "/rest-server/api/v1/jobs")
    assert with_prefix(again) is again


@pytest.mark.parametrize(
    ("name", "host"),
    [("", "pai.example"), ("", ""), ("pai.example", "console.example"), ("pai.example", "\xff")],
)
def test_path_under_other_host_stays(settings: LazySettings, name: str, host: str) -> None:
    settings.CONSOLE_OPENPAI_HOST = name
    scope = scope_of(host, "/api/v1/jobs")
    assert with_prefix(scope) is scope
