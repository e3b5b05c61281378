"""Addresses that the console itself may contact when a person names them: public hosts, and those of admins.

Whoever names an address must not reach through the console what they could not reach themselves (SSRF).
Every address of a name has to be public; hosts of the own network, plain http and other ports are for the
admin to allow (CONSOLE_EGRESS_HOSTS).  The data mover, a program of its own, has the rule for one IP address
(`jobs.data_mover.guard`).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from jobs.data_mover.guard import Address, is_allowed

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LONGEST_URL: Final = 2000
PORTS: Final = {"https": 443, "http": 80}

_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_NUMBER: Final = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.ASCII)


class AddressError(Exception):
    """A request that failed; `code` is one of `jobs.messages.deliveries`."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


class Refused(AddressError):
    """The address may not be contacted: the request is never made."""


@dataclass(frozen=True, slots=True)
class UrlTarget:
    """The target of a URL, before its name is resolved; `inside` when an admin allowed it."""

    scheme: str
    host: str
    port: int
    path: str
    inside: bool


def check(url: str) -> UrlTarget:
    """Return the target of a URL, checked before its name is resolved.  Raises Refused."""
    parts = _split(url)
    host = _host(parts)
    try:
        port = parts.port or PORTS[parts.scheme]
    except ValueError as error:
        raise Refused("url") from error
    inside = _is_allowed_inside(parts.scheme, host, port)
    if not inside and parts.scheme != "https":
        raise Refused("http")
    if not inside and str(port) not in settings.CONSOLE_EGRESS_PORTS:
        raise Refused("port", str(port))
    literal = literal_of(host)
    if literal is not None:
        require(literal, inside=inside)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return UrlTarget(parts.scheme, host, port, path, inside)


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
    """Return the host in lower case: a name, or an address in its usual form.  Raises Refused."""
    host = (parts.hostname or "").removesuffix(".")
    if literal_of(host) is not None:
        return host
    if not _NAME.fullmatch(host) or _NUMBER.fullmatch(host.rpartition(".")[2]):
        raise Refused("host")
    return host


def literal_of(host: str) -> Address | None:
    """Return the address that the host is; None for a name."""
    if "%" in host:
        return None
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_allowed_inside(scheme: str, host: str, port: int) -> bool:
    """Tell whether an admin allowed this host, with this port and scheme (CONSOLE_EGRESS_HOSTS)."""
    literal = literal_of(host)
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


def require(address: Address, *, inside: bool) -> None:
    """Raise Refused for an IP address that may not be connected to; `inside` for a host of the admin's."""
    if not is_allowed(address, inside=inside):
        raise Refused("address", str(address))
