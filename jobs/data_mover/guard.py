"""Guard of connections: public addresses are allowed, and those that an admin allows by name.

What is looked at is the address that is connected to, at the moment of connecting: whatever a name
resolved to, and wherever a redirection led.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NEVER: Final = tuple(
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32",  # the metadata service of a large cloud, in public space
        "192.0.0.0/24",  # protocols' own, and another cloud's metadata
        "192.88.99.0/24",  # 6to4 relays
        "::/96",  # IPv4 in IPv6, the old way
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "fec0::/10",  # site-local
        "5f00::/16",  # segment routing
    )
)
"""What `is_global` lets through and still leads inside, or may."""

LINK_LOCAL: Final = tuple(
    ipaddress.ip_network(text)
    for text in ("169.254.0.0/16", "fe80::/10", "0.0.0.0/8", "fd00:ec2::254/128", "100.100.100.200/32")
)
"""Not even a host that an admin allows by name may lie here: metadata services do."""

PORTS: Final = {"http": 80, "https": 443, "ssh": 22, "git": 9418}


def is_public(address: Address) -> bool:
    """Tell whether the address is of the internet at large: not of this machine, this network or a tunnel."""
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address.scope_id):
        return False
    if any(address in network for network in NEVER):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def may_be_inside(address: Address) -> bool:
    """Tell whether a host that an admin allows by name may have the address."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return may_be_inside(address.ipv4_mapped)
    return not any(address in network for network in LINK_LOCAL)


def is_allowed(address: Address, *, inside: bool) -> bool:
    """Tell whether the address may be connected to; `inside` for a host that an admin allows by name."""
    return is_public(address) or (inside and may_be_inside(address))


class Allowed:
    """Allowed destinations of connections.  `inside` are hosts with their ports, `minio.example.org:9000`."""

    def __init__(self, inside: Iterable[str] = ()) -> None:
        self._names = {name.lower() for name in inside}
        self._known: set[tuple[Address, int]] = set()

    def admit(self, host: str, port: int) -> None:
        """Let a host that an allowed one names be inside this network, too."""
        self._names.add(f"{host}:{port}".lower())

    def record_lookup(self, host: object, port: object, found: Sequence[Any]) -> None:
        """The resolver said that the host has these addresses."""
        if isinstance(host, bytes):
            host = host.decode("ascii", "replace")
        if f"{host}:{port}".lower() in self._names:
            self._known |= {(ipaddress.ip_address(row[4][0]), row[4][1]) for row in found}

    def check(self, family: int, address: Any) -> None:
        """OSError for an address that may not be connected to."""
        if family not in (socket.AF_INET, socket.AF_INET6):
            raise PermissionError(errno.EACCES, "only hosts of the internet are spoken to")
        ip, port = ipaddress.ip_address(str(address[0]).partition("%")[0]), int(address[1])
        named = (ip, port) in self._known or f"{ip}:{port}" in self._names
        if not is_allowed(ip, inside=named):
            raise PermissionError(errno.EACCES, f"{ip} is inside a network and not allowed here")


def keep_to(allowed: Allowed) -> None:
    """From now on this process connects nowhere else: every library's sockets are made here."""
    real: type[socket.socket] = socket.socket
    look_up: Callable[..., Any] = socket.getaddrinfo

    class Guarded(real):  # type: ignore[misc, valid-type]
        """A socket that asks first."""

        def connect(self, address: Any) -> None:
            allowed.check(self.family, address)
            super().connect(address)

        def connect_ex(self, address: Any) -> int:
            allowed.check(self.family, address)
            return int(super().connect_ex(address))

        def sendto(self, *words: Any) -> int:
            allowed.check(self.family, words[-1])
            return int(super().sendto(*words))

    def look_up_recorded(host: Any, port: Any, *words: Any, **more: Any) -> Any:
        found = look_up(host, port, *words, **more)
        allowed.record_lookup(host, port, found)
        return found

    socket.socket = Guarded  # type: ignore[misc]
    socket.getaddrinfo = look_up_recorded


def addresses_of(host: str, port: int, *, inside: bool) -> list[str]:
    """The host's addresses, all of which may be connected to; OSError."""
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    found = list(dict.fromkeys(str(row[4][0]) for row in rows))
    for text in found:
        ip = ipaddress.ip_address(text.partition("%")[0])
        if not is_allowed(ip, inside=inside):
            raise PermissionError(errno.EACCES, f"{host} is {ip}, which is inside a network")
    return found
