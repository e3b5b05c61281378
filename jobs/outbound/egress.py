"""The only way out to addresses that people give: one request, one answer, never into this network.

Whoever names an address must not reach through the console what they could not reach themselves.  So the
name is resolved here, once; every address that it has must be a public one; and the connection goes to
exactly the address that was looked at, while TLS still asks for the name.  No redirect is followed, no
proxy is taken from the environment, and there is one deadline for all of it.  Hosts inside, plain http and
other ports are for the admin to allow (CONSOLE_EGRESS_HOSTS).
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from jobs.data_mover.guard import is_public, may_be_inside

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MOST_BYTES: Final = 64 * 1024
"""Of a longer answer the rest is not read."""

LONGEST_URL: Final = 2000
TRIED: Final = 3
"""So many of a name's addresses are tried."""

PORTS: Final = {"https": 443, "http": 80}

_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_NUMBER: Final = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.ASCII)


class Refused(Exception):
    """The request is never made; `code` is one of `jobs.messages.deliveries`."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


class Failed(Exception):
    """There was no answer, and there may be one later; `code` as above."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; header names are in lower case, `body` is cut at MOST_BYTES."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Target:
    """Where a URL leads, before its name is resolved; `inside` when an admin allowed it."""

    scheme: str
    host: str
    port: int
    path: str
    inside: bool


def request(method: str, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
    """Make one request.  Raises Refused, Failed."""
    deadline = time.monotonic() + settings.CONSOLE_EGRESS_SECONDS
    target = check(url)
    wire = _connect(target, _resolve(target, deadline), deadline)
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = wire  # all of a socket that it asks for
    try:
        connection.request(method, target.path, body, {**headers, "Connection": "close"})
        response = connection.getresponse()
        data = response.read(MOST_BYTES)
    except TimeoutError as error:
        raise Failed("timeout") from error
    except (OSError, http.client.HTTPException) as error:
        raise Failed("broken", str(error)) from error
    finally:
        connection.close()
        wire.hang_up()
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, data)


# --- before anything is resolved -------------------------------------------------------------------------


def check(url: str) -> Target:
    """What can be said of an address by reading it.  Raises Refused."""
    parts = _split(url)
    host = _host(parts)
    try:
        port = parts.port or PORTS[parts.scheme]
    except ValueError as error:
        raise Refused("url") from error
    inside = _allowed(parts.scheme, host, port)
    if not inside and parts.scheme != "https":
        raise Refused("http")
    if not inside and str(port) not in settings.CONSOLE_EGRESS_PORTS:
        raise Refused("port", str(port))
    literal = _literal(host)
    if literal is not None:
        _require(literal, inside=inside)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port, path, inside)


def _split(url: str) -> SplitResult:
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or set(url) & set(' "<>\\^`{|}'):
        raise Refused("url")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise Refused("url") from error
    if parts.scheme not in PORTS:
        raise Refused("scheme")
    if "@" in parts.netloc:
        raise Refused("userinfo")
    return parts


def _host(parts: SplitResult) -> str:
    """The host in lower case, a name or an address in its usual form; nothing that only looks like one."""
    host = (parts.hostname or "").removesuffix(".")
    if _literal(host) is not None:
        return host
    if not _NAME.fullmatch(host) or _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise Refused("host")
    return host


def _literal(host: str) -> Address | None:
    if "%" in host:
        return None
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _allowed(scheme: str, host: str, port: int) -> bool:
    """Whether an admin named this host, with this port and scheme."""
    literal = _literal(host)
    for entry in settings.CONSOLE_EGRESS_HOSTS:
        network = _network(entry)
        if network is not None:
            usual = scheme == "https" and str(port) in settings.CONSOLE_EGRESS_PORTS
            if literal is not None and literal in network and usual:
                return True
            continue
        parts = urlsplit(entry if "://" in entry else f"https://{entry}")
        if (scheme, host, port) == (parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)):
            return True
    return False


def _network(entry: str) -> Network | None:
    try:
        return ipaddress.ip_network(entry) if "/" in entry and "://" not in entry else None
    except ValueError:
        return None


# --- addresses -------------------------------------------------------------------------------------------


def _require(address: Address, *, inside: bool) -> None:
    if inside and may_be_inside(address):
        return
    if not is_public(address):
        raise Refused("address", str(address))


def _resolve(target: Target, deadline: float) -> Sequence[Address]:
    """The name's addresses, every one of which may be connected to.  Raises Refused, Failed."""
    literal = _literal(target.host)
    if literal is not None:
        return [literal]
    found = [ipaddress.ip_address(text) for text in _look_up(target, deadline)]
    for address in found:
        _require(address, inside=target.inside)
    return found[:TRIED]


def _look_up(target: Target, deadline: float) -> Sequence[str]:
    """Ask the resolver, no longer than until the deadline: its own time limits are longer than ours."""
    answers: list[str] = []
    problems: list[Exception] = []

    def ask() -> None:
        try:
            rows = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            problems.append(error)
        else:
            answers.extend(dict.fromkeys(str(row[4][0]) for row in rows))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(max(0.0, deadline - time.monotonic()))
    if asking.is_alive():
        raise Failed("timeout")
    if problems or not answers:
        raise Failed("resolve", target.host)
    if any("%" in answer for answer in answers):
        raise Refused("address", target.host)
    return answers


# --- the connection --------------------------------------------------------------------------------------


class _Wire:
    """What `http.client` needs of a socket, with one deadline for everything that passes it."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline

    def _hurry(self) -> socket.socket:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._sock

    def sendall(self, data: Any) -> None:
        self._hurry().sendall(data)

    def receive(self, buffer: Any) -> int:
        return self._hurry().recv_into(buffer)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        """The response closes its connection once it knows its length, and reads on: a socket allows that."""

    def hang_up(self) -> None:
        self._sock.close()


class _Reader(io.RawIOBase):
    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._wire.receive(buffer)


def _connect(target: Target, addresses: Sequence[Address], deadline: float) -> _Wire:
    """A connection to the first of the addresses that takes one."""
    problem: Exception = Failed("resolve", target.host)
    for address in addresses:
        try:
            return _open(target, address, deadline)
        except ssl.SSLError as error:
            raise Failed("tls", _why(error)) from error
        except TimeoutError as error:
            raise Failed("timeout") from error
        except OSError as error:
            problem = Failed("connect", error.strerror or str(error))
    raise problem


def _why(error: ssl.SSLError) -> str:
    return str(getattr(error, "verify_message", "") or error.reason or error)


def _open(target: Target, address: Address, deadline: float) -> _Wire:
    sock = _dial(target, str(address), deadline)
    try:
        if target.scheme == "https":
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=target.host)
    except BaseException:
        sock.close()
        raise
    return _Wire(sock, deadline)


def _dial(target: Target, address: str, deadline: float) -> socket.socket:
    """A connection to exactly this address; to one outside through the admin's proxy if there is one."""
    left = max(0.001, deadline - time.monotonic())
    proxy = urlsplit(settings.CONSOLE_EGRESS_PROXY)
    if target.inside or not proxy.hostname:
        return socket.create_connection((address, target.port), timeout=left)
    sock = socket.create_connection((proxy.hostname, proxy.port or 3128), timeout=left)
    where = f"[{address}]:{target.port}" if ":" in address else f"{address}:{target.port}"
    try:
        sock.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n") and len(answer) < MOST_BYTES:
            piece = sock.recv(1)  # not one byte of what comes after belongs to the proxy
            if not piece:
                break
            answer += piece
        if answer.split(b" ", 2)[1:2] != [b"200"]:
            raise Failed("proxy", answer.partition(b"\r\n")[0].decode("latin-1"))
    except BaseException:
        sock.close()
        raise
    return sock
