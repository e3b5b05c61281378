"""Listening sockets, as the kernel lists them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import islice
from pathlib import Path
from typing import Final

from jobs.node import socket_diag

_LISTEN: Final = "0A"
_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that listens: where, whose user's, and its inode number."""

    address: Address
    port: int
    uid: int
    inode: int

    @property
    def reachable_at(self) -> str:
        """Return the address to connect to, in the same network."""
        if self.address.is_unspecified:
            return "127.0.0.1" if self.address.version == 4 else "::1"
        return str(self.address)


def list_listeners() -> list[Listener]:
    """Every one in this network namespace."""
    try:
        with socket_diag.open_diag() as diag:
            return list_listeners_by(diag)
    except OSError:  # a kernel without it
        return [_listener(fields) for fields in _lines()]


def list_listeners_by(diag: socket.socket, most: int | None = None) -> list[Listener]:
    """Every one in the network namespace of a socket of `socket_diag`; OSError in a kernel without it.

    Where there are `most` or more, only so many, and the socket is of no use any more.
    """
    found = islice(socket_diag.list_listening(diag), most)
    return [Listener(ip_address(address), port, uid, inode) for address, port, uid, inode in found]


def list_listeners_on(port: int) -> list[Listener]:
    """Those that listen on `port`, whatever their address."""
    return [each for each in list_listeners() if each.port == port]


def _listener(fields: list[str]) -> Listener:
    address, _, port = fields[1].rpartition(":")
    return Listener(_address(address), int(port, 16), int(fields[7]), int(fields[9]))


def is_loopback(host: str) -> bool:
    """Return whether a name or address means this machine itself, wherever it is used."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def accepting_sockets(found: Iterable[Listener], host: str, port: int) -> list[Listener]:
    """Return the sockets that would accept a connection to `host`:`port`.

    The kernel prefers whoever has the very address to whoever has all of them; several of the same rank
    share it.
    """
    wanted = ip_address(host)
    ranked = [
        (rank, one) for one in found if one.port == port and (rank := _rank(one.address, wanted)) < _NOT
    ]
    best = min((rank for rank, _one in ranked), default=_NOT)
    return [one for rank, one in ranked if rank == best]


_NOT: Final = 3


def _rank(address: Address, wanted: Address) -> int:
    """How well a listening address fits; `_NOT` for not at all.  One for IPv6 takes IPv4 too, mostly."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    if wanted in (address, mapped):
        return 0
    if not address.is_unspecified and not (mapped and mapped.is_unspecified):
        return _NOT
    if address.version == wanted.version:
        return 1
    return 2 if address.version == 6 else _NOT


def sockets_of(pids: Iterable[int]) -> frozenset[int]:
    """The inode numbers of all sockets that the processes hold."""
    links = (link for pid in pids for link in _links(pid))
    return frozenset(int(link[8:-1]) for link in links if link.startswith("socket:["))


def ephemeral() -> range:
    """The ports that the kernel gives to whoever asks for any."""
    first, last = map(int, _EPHEMERAL.read_text(encoding="ascii").split())
    return range(first, last + 1)


def _links(pid: int) -> Iterator[str]:
    """Yield the targets of the process' descriptors, as far as they still exist."""
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(file.readlink())


def _address(field: str) -> Address:
    """The kernel prints each 32 bits in the machine's own order."""
    raw = bytes.fromhex(field.partition(":")[0])
    step = -1 if sys.byteorder == "little" else 1
    return ip_address(b"".join(raw[at : at + 4][::step] for at in range(0, len(raw), 4)))


def _lines() -> Iterator[list[str]]:
    """The fields of each listening socket in the kernel's tables."""
    for table in _TABLES:
        try:
            with Path(table).open(encoding="utf-8") as file:
                next(file, None)
                for line in file:
                    fields = line.split(None, 10)
                    if fields[3] == _LISTEN:
                        yield fields
        except FileNotFoundError:
            continue
