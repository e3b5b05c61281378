"""Requests to addresses that people give: one request, one answer, never into this network.

The name is resolved here, once; every address that it has must be allowed (`addresses`); and the
connection goes to exactly the checked address, while TLS still asks for the name.  No redirect is followed,
no proxy is taken from the environment, and there is one deadline for all of it.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from jobs.data_mover.guard import Address
from jobs.outbound import addresses
from jobs.outbound.addresses import AddressError, Refused, UrlTarget

MOST_BYTES: Final = 64 * 1024
"""Of a longer answer the rest is not read."""

TRIED: Final = 3
"""So many of a name's addresses are tried."""


class Failed(AddressError):
    """There was no answer, and there may be one later."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer; header names are in lower case, `body` may be cut."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def request(
    method: str, url: str, *, headers: Mapping[str, str], body: bytes, most: int = MOST_BYTES
) -> Answer:
    """Make one request; read at most `most` bytes of its answer.  Raises Refused, Failed."""
    deadline = time.monotonic() + settings.CONSOLE_EGRESS_SECONDS
    target = addresses.check(url)
    wire = _connect(target, _resolve(target, deadline), deadline)
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = wire  # all of a socket that it asks for
    try:
        connection.request(method, target.path, body, {**headers, "Connection": "close"})
        response = connection.getresponse()
        data = response.read(most)
    except TimeoutError as error:
        raise Failed("timeout") from error
    except (OSError, http.client.HTTPException) as error:
        raise Failed("broken", str(error)) from error
    finally:
        connection.close()
        wire.hang_up()
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, data)


# --- addresses -------------------------------------------------------------------------------------------


def _resolve(target: UrlTarget, deadline: float) -> Sequence[Address]:
    """Return the name's addresses, every one of which may be connected to.  Raises Refused, Failed."""
    literal = addresses.literal_of(target.host)
    if literal is not None:
        return [literal]
    found = [ipaddress.ip_address(text) for text in _look_up(target, deadline)]
    for address in found:
        addresses.require(address, inside=target.inside)
    return found[:TRIED]


def _look_up(target: UrlTarget, deadline: float) -> Sequence[str]:
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

    resolver = threading.Thread(target=ask, daemon=True)
    resolver.start()
    resolver.join(max(0.0, deadline - time.monotonic()))
    if resolver.is_alive():
        raise Failed("timeout")
    if problems or not answers:
        raise Failed("resolve", target.host)
    if any("%" in answer for answer in answers):
        raise Refused("address", target.host)
    return answers


# --- the connection --------------------------------------------------------------------------------------


class _Wire:
    """The part of a socket that `http.client` uses, with one deadline for everything."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline

    def _with_timeout(self) -> socket.socket:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._sock

    def sendall(self, data: Any) -> None:
        self._with_timeout().sendall(data)

    def receive(self, buffer: Any) -> int:
        return self._with_timeout().recv_into(buffer)

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


def _connect(target: UrlTarget, addresses: Sequence[Address], deadline: float) -> _Wire:
    """Connect to the first of the addresses that accepts."""
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


def _open(target: UrlTarget, address: Address, deadline: float) -> _Wire:
    sock = _dial(target, str(address), deadline)
    try:
        if target.scheme == "https":
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=target.host)
    except BaseException:
        sock.close()
        raise
    return _Wire(sock, deadline)


def _dial(target: UrlTarget, address: str, deadline: float) -> socket.socket:
    """Connect to exactly this address; to one outside through the admin's proxy if there is one."""
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
