"""A request to an endpoint's host, taken apart once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from jobs.access.gateway import addresses
from jobs.access.gateway.asgi import Headers, Scope
from jobs.access.gateway.cookies import Cookies

MOST_HEADER_BYTES: Final = 64 * 1024
MOST_HEADERS: Final = 200
MOST_TARGET_BYTES: Final = 16 * 1024

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
REFUSED: Final = frozenset({"CONNECT", "TRACE"})
"""CONNECT makes tunnels, TRACE shows cookies to scripts."""


class Malformed(Exception):
    """No request that the gateway takes; `status` says why (RFC 9110, RFC 6585)."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """A request to an endpoint.

    `target` is the path and query as they came, never decoded or normalized.  `origin` is what browsers call
    the host they are at; `headers` are without cookies, which are in `cookies`.
    """

    websocket: bool
    method: str
    scheme: str
    host: str
    slug: str
    path: str
    target: str
    headers: Headers
    cookies: Cookies
    client: str

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}"

    @property
    def query(self) -> Mapping[str, str]:
        """The first value of each parameter; for the gateway's own pages."""
        return {name: values[0] for name, values in parse_qs(self.target.partition("?")[2]).items()}

    def header(self, name: bytes) -> str | None:
        """The header's first value; `name` is in lower case."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)

    @property
    def wants_page(self) -> bool:
        """Tell whether a person looks at the answer, rather than a script."""
        if self.websocket or self.method not in {"GET", "HEAD"}:
            return False
        mode = self.header(b"sec-fetch-mode")
        return mode == "navigate" if mode else "text/html" in (self.header(b"accept") or "")

    @property
    def crosses_origins(self) -> bool:
        """Tell whether another origin's page sent this, other than by leading the person here.

        Endpoints are neighbours: to browsers they are the same *site*, so SameSite cookies protect none of
        them from the next one.  What no browser sent has none of these headers, and no cookie by accident.
        """
        origin, site = self.header(b"origin"), self.header(b"sec-fetch-site")
        if origin is not None and origin.lower() != self.origin:
            return True
        if site is None or site in {"same-origin", "none"}:
            return False
        visit = self.header(b"sec-fetch-mode") == "navigate" and self.header(b"sec-fetch-dest") == "document"
        return self.websocket or self.method not in {"GET", "HEAD"} or not visit


def parse_request(scope: Scope) -> EndpointRequest:
    """Parse the request in `scope`.  Raises Malformed."""
    hosts = addresses.hosts(scope)
    slug = addresses.slug_of(hosts[0]) if len(hosts) == 1 else None
    if slug is None:
        raise Malformed(421 if len(hosts) == 1 else 400)
    path = bytes(scope.get("raw_path") or b"").decode("ascii")
    query = scope["query_string"].decode("latin-1")
    target = f"{path}?{query}" if query else path
    method = scope.get("method", "GET")
    if method in REFUSED:
        raise Malformed(405)
    if not path.startswith("/"):
        raise Malformed(400)
    if len(target) > MOST_TARGET_BYTES:
        raise Malformed(414)
    headers: Headers = scope["headers"]
    if len(headers) > MOST_HEADERS or sum(len(n) + len(v) for n, v in headers) > MOST_HEADER_BYTES:
        raise Malformed(431)
    return EndpointRequest(
        websocket=scope["type"] == "websocket",
        method=method,
        scheme=addresses.scheme_of(scope["scheme"]),
        host=hosts[0],
        slug=slug,
        path=path,
        target=target,
        headers=[(name, value) for name, value in headers if name != b"cookie"],
        cookies=Cookies.of(headers),
        client=(scope.get("client") or ("", 0))[0],
    )
