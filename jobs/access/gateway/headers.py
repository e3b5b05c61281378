"""Headers that pass between browsers and jobs, and their changes on the way.

A job is told one story and a browser another, each consistent: the job listens as `localhost:<port>` and
never hears of the console's cookies or tokens; the browser stays at the endpoint's own host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from jobs.access.gateway.asgi import Headers
from jobs.access.gateway.cookies import is_ours
from jobs.access.gateway.requests import EndpointRequest
from jobs.access.gateway.visits import EndpointAccess

HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""RFC 9110 section 7.6.1: about one connection, and never passed on."""

OURS_TO_SAY: Final = frozenset({b"host", b"origin", b"expect", b"forwarded", b"x-real-ip"})
HANDSHAKE: Final = b"sec-websocket-"
CONSOLE_TOKEN: Final = b"bearer jc_"

NOT_FOR_BROWSERS: Final = frozenset({b"alt-svc", b"clear-site-data", b"date", b"public-key-pins"})
"""Alt-Svc would lead browsers past the gateway; Clear-Site-Data would take its cookies away, and in browsers
that go by the site the console's; the server dates every answer itself."""

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost", "0.0.0.0"})  # noqa: S104  # compared with


def upstream_host(access: EndpointAccess) -> str:
    """Return the Host header for the job: Jupyter, and others that fear DNS rebinding, answer to that."""
    return f"localhost:{access.port}"


def to_job(request: EndpointRequest, access: EndpointAccess) -> list[tuple[str, str]]:
    """The headers of the request as the job gets it.

    Origin is compared by the gateway, which has the right name to compare with, and goes no further.  A job
    that wants to know its public name finds it in X-Forwarded-Host.
    """
    named = _connection_headers(request.headers)
    host = upstream_host(access)
    passed: Headers = [
        (name, value)
        for name, value in request.headers
        if name not in HOP_BY_HOP
        and name not in OURS_TO_SAY
        and name not in named
        and not name.startswith((b"x-forwarded-", HANDSHAKE))
        and not (name == b"authorization" and value.lower().startswith(CONSOLE_TOKEN))
    ]
    if request.cookies.others:
        passed.append((b"cookie", request.cookies.others))
    renamed = [(_text(name), _referer(request, host, name, value)) for name, value in passed]
    return [
        ("host", host),
        *renamed,
        ("x-forwarded-for", request.client),
        ("x-forwarded-host", request.host),
        ("x-forwarded-proto", request.scheme),
    ]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _referer(request: EndpointRequest, host: str, name: bytes, value: bytes) -> str:
    text = _text(value)
    if name == b"referer" and text.startswith(f"{request.origin}/"):
        return f"http://{host}{text.removeprefix(request.origin)}"
    return text


def _connection_headers(headers: Headers) -> set[bytes]:
    """The headers that Connection names as its own."""
    listed = [value for name, value in headers if name == b"connection"]
    return {token.strip().lower() for value in listed for token in value.split(b",")}


def to_browser(
    raw: Sequence[tuple[bytes, bytes]], request: EndpointRequest, access: EndpointAccess, status: int = 200
) -> Headers:
    """The headers of the job's answer as the browser gets it."""
    headers = [(name.lower(), value) for name, value in raw]
    named = _connection_headers(headers)
    chunked = any(name == b"transfer-encoding" for name, _value in headers)
    dropped = HOP_BY_HOP | NOT_FOR_BROWSERS | named
    if chunked or status in {204, 304}:
        dropped |= {b"content-length"}
    passed: Headers = []
    for name, value in headers:
        if name in dropped or name.startswith(HANDSHAKE):
            continue
        kept = value
        if name == b"set-cookie":
            kept = _host_only(value)
        elif name == b"location":
            kept = _location(value, request, access)
        if kept or not value:
            passed.append((name, kept))
    return passed + _protection({name for name, _value in passed})


def _host_only(cookie: bytes) -> bytes:
    """The cookie for this host alone; nothing when it would pass for one of the gateway's."""
    pair, *attributes = cookie.split(b";")
    if is_ours(pair):
        return b""
    return b";".join([pair, *(a for a in attributes if a.partition(b"=")[0].strip().lower() != b"domain")])


def _location(value: bytes, request: EndpointRequest, access: EndpointAccess) -> bytes:
    """A redirect to where the job thinks it is, made one to where it is reached."""
    try:
        there = urlsplit(value.decode("latin-1"))
        same = there.port == access.port and there.hostname in LOOPBACK | {access.host}
    except ValueError:
        return value
    if there.scheme not in {"http", "https"} or not same:
        return value
    return f"{request.origin}{there._replace(scheme='', netloc='').geturl() or '/'}".encode("latin-1")


def _protection(present: set[bytes]) -> Headers:
    """Return headers that protect every endpoint, in addition to those of its application.

    A second Content-Security-Policy only narrows the first.  No other origin may frame an endpoint or load
    parts of it, and addresses, which may carry a token, are told to no other origin.
    """
    added: Headers = [(b"content-security-policy", b"frame-ancestors 'self'")]
    if b"referrer-policy" not in present:
        added.append((b"referrer-policy", b"same-origin"))
    if b"cross-origin-resource-policy" not in present:
        added.append((b"cross-origin-resource-policy", b"same-origin"))
    if settings.CONSOLE_TLS and b"strict-transport-security" not in present:
        added.append((b"strict-transport-security", b"max-age=31536000"))
    return added
