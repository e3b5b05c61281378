"""Whose word the web server takes for where a request comes from."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from console import settings
from console.server import web

PROXY, OTHER_PROXY = "192.0.2.1", "198.51.100.7"
CLIENT = "203.0.113.5"


@pytest.fixture(autouse=True)
def _proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "CONSOLE_TRUSTED_PROXIES", [PROXY, "198.51.100.0/24"])


def origin(peer: str, *forwarded: str) -> str:
    """Return the address and scheme that an application is told of a request by `peer`."""
    told: list[str] = []

    async def application(scope: Any, _receive: Any, _send: Any) -> None:
        told.append(f"{scope['client'][0]} {scope['scheme']}")

    config = web.make_config(application)
    config.load()
    headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
    headers += [(b"x-forwarded-proto", b"https")]
    scope = {"type": "http", "scheme": "http", "client": (peer, 50_000), "headers": headers}
    serve: Any = config.loaded_app
    asyncio.run(serve(scope, None, None))
    return told[0]


def test_forwarded_header_from_an_untrusted_peer_is_ignored() -> None:
    for peer in (CLIENT, "127.0.0.1", "192.0.2.2"):
        assert origin(peer, "10.0.0.1", PROXY) == f"{peer} http"


def test_forwarded_header_from_a_trusted_proxy_is_believed() -> None:
    assert origin(PROXY, CLIENT) == f"{CLIENT} https"


@pytest.mark.parametrize(
    "forwarded",
    [
        [f"10.0.0.1, {CLIENT}"],
        ["10.0.0.1", CLIENT],
        [f"10.0.0.1, 127.0.0.1, {CLIENT}, {OTHER_PROXY}"],
        [f"{PROXY}, {CLIENT}"],
    ],
    ids=["one header", "two headers", "two proxies", "as if a proxy"],
)
def test_forwarded_header_names_the_last_hop_before_the_trusted_proxies(forwarded: list[str]) -> None:
    assert origin(PROXY, *forwarded) == f"{CLIENT} https"


def test_forwarded_header_is_ignored_without_trusted_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "CONSOLE_TRUSTED_PROXIES", [])
    assert origin("127.0.0.1", CLIENT) == "127.0.0.1 http"
