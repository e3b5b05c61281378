"""The head of an HTTP/1.1 request as a job sends it, read strictly (RFC 9112): what is unusual is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

MAX_BODY: Final = 1024 * 1024
"""The largest batch of MLflow's client has a million bytes."""

MAX_TARGET: Final = 4096
MAX_HEADERS: Final = 64

END: Final = b"\r\n\r\n"
_METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE"})
_TARGET: Final = re.compile(rb"/[\x21-\x7e]*")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_LENGTH: Final = re.compile(rb"[0-9]{1,9}")

IDENTITY: Final = b"job-console-"
"""With this begin the names of headers that say who asks: only the console's own processes send them."""

_NOT_PASSED: Final = frozenset(
    {
        b"connection",
        b"content-length",
        b"expect",
        b"forwarded",
        b"host",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
    }
)
"""About the job's own connection (RFC 9110 section 7.6.1), or said anew."""


class BadRequest(Exception):
    """The request is refused with `status`."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request: `headers` are those that are passed on, with names in lower case."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    length: int
    expects: bool

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a head that ends with `END`.  Raises BadRequest."""
        first, *lines = data.removesuffix(END).split(b"\r\n")
        method, target = _parse_request_line(first)
        if len(lines) > MAX_HEADERS:
            raise BadRequest(431)
        headers = [_parse_header(line) for line in lines]
        if len(_values(headers, b"host")) != 1:
            raise BadRequest(400)
        if _values(headers, b"transfer-encoding"):
            raise BadRequest(411)
        passed = tuple(pair for pair in headers if _is_passed(pair[0]))
        expects = any(value.lower() == b"100-continue" for value in _values(headers, b"expect"))
        return cls(method, target, passed, _parse_length(headers), expects)

    def render(self, own: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Return the head for the console: one request of its connection, with the headers `own` too."""
        headers = [
            (b"host", b"job-console"),
            (b"connection", b"close"),
            (b"content-length", b"%d" % self.length),
            *own,
            *self.headers,
        ]
        lines = [b"%s %s HTTP/1.1" % (self.method, self.target), *(b"%s: %s" % pair for pair in headers)]
        return b"\r\n".join(lines) + END


def _parse_request_line(line: bytes) -> tuple[bytes, bytes]:
    words = line.split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/"):
        raise BadRequest(400)
    method, target, version = words
    if version != b"HTTP/1.1":
        raise BadRequest(505)
    if method not in _METHODS:
        raise BadRequest(501)
    if len(target) > MAX_TARGET:
        raise BadRequest(414)
    if _TARGET.fullmatch(target) is None:
        raise BadRequest(400)
    return method, target


def _parse_header(line: bytes) -> tuple[bytes, bytes]:
    found = _HEADER.fullmatch(line)
    if found is None:
        raise BadRequest(400)
    return found[1].lower(), found[2].rstrip(b" \t")


def _values(headers: Sequence[tuple[bytes, bytes]], wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name == wanted]


def _parse_length(headers: Sequence[tuple[bytes, bytes]]) -> int:
    lengths = _values(headers, b"content-length")
    if not lengths:
        return 0
    if len(lengths) > 1 or _LENGTH.fullmatch(lengths[0]) is None:
        raise BadRequest(400)
    if int(lengths[0]) > MAX_BODY:
        raise BadRequest(413)
    return int(lengths[0])


def _is_passed(name: bytes) -> bool:
    """Tell whether the console gets the header; some servers take `_` in a name for `-`."""
    plain = name.replace(b"_", b"-")
    return plain not in _NOT_PASSED and not plain.startswith((IDENTITY, b"x-forwarded-"))
