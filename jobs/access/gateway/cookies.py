"""The gateway's two cookies on every endpoint's host, kept apart from those of the job behind it.

`visit` lets its browser pass.  `browser` ties a ticket to the browser that asked for it, as OAuth's `state`
does.  Neither ever reaches a job, and no job can set one.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Self

from django.conf import settings

from jobs.access.gateway.asgi import Headers

VISIT: Final = "job-console"
BROWSER: Final = "job-console-browser"
BROWSER_SECONDS: Final = 600
"""How long signing in may take on the way."""

MOST_VALUES: Final = 4
"""Without TLS a neighbour can set cookies of our names for all endpoints: one of the values is ours."""

_OURS: Final = frozenset(
    prefix + name for name in (VISIT.encode(), BROWSER.encode()) for prefix in (b"", b"__host-", b"__secure-")
)


_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def new_secret() -> str:
    """256 bits, safe in cookies and addresses."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """Return the stored form of a secret: 64 hexadecimal digits."""
    return sha256(secret.encode()).hexdigest()


def _name(name: str) -> str:
    return f"__Host-{name}" if settings.CONSOLE_TLS else name


@dataclass(frozen=True, slots=True)
class Cookies:
    """Cookies of a browser: the values under our names, and a Cookie header with all others."""

    visits: tuple[str, ...]
    browsers: tuple[str, ...]
    others: bytes

    @classmethod
    def of(cls, headers: Headers) -> Self:
        """Parse the Cookie headers."""
        pairs = [pair.strip() for name, value in headers if name == b"cookie" for pair in value.split(b";")]
        return cls(
            visits=_values(pairs, _name(VISIT)),
            browsers=_values(pairs, _name(BROWSER)),
            others=b"; ".join(pair for pair in pairs if pair and not is_ours(pair)),
        )


def _values(pairs: list[bytes], name: str) -> tuple[str, ...]:
    start = f"{name}=".encode()
    found = [pair[len(start) :].decode("latin-1") for pair in pairs if pair.startswith(start)]
    return tuple(value for value in found if _SECRET.fullmatch(value))[:MOST_VALUES]


def is_ours(pair: bytes) -> bool:
    """Tell whether `name=value` is, or could pass for, one of our cookies.

    A cookie without a name is sent back as its value alone, which may well read like one of ours.
    """
    name, equals, _value = pair.partition(b"=")
    bare = name.strip().lower()
    return not equals or not bare or bare in _OURS


def set_visit(secret: str) -> tuple[bytes, bytes]:
    """The header that lets this browser pass until its sign-in ends."""
    return _cookie_header(VISIT, secret)


def set_browser(secret: str) -> tuple[bytes, bytes]:
    """The header that ties the next ticket to this browser."""
    return _cookie_header(BROWSER, secret, BROWSER_SECONDS)


def set_token(name: str, token: str) -> tuple[bytes, bytes]:
    """The header with the token of what listens, which reads it from the cookie of that name."""
    return _render_header(name, token)


def _cookie_header(name: str, value: str, seconds: int | None = None) -> tuple[bytes, bytes]:
    return _render_header(_name(name), value, seconds)


def _render_header(name: str, value: str, seconds: int | None = None) -> tuple[bytes, bytes]:
    parts = [f"{name}={value}", "Path=/", "HttpOnly", "SameSite=Lax"]
    if seconds is not None:
        parts.append(f"Max-Age={seconds}")
    if settings.CONSOLE_TLS:
        parts.append("Secure")
    return b"set-cookie", "; ".join(parts).encode()
