"""Whether somebody listens on a port: read from the kernel, as a connection would show in a server's log."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

_LISTEN: Final = "0A"
_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")


def listening(ports: Iterable[int], uid: int | None = None) -> frozenset[int]:
    """Which of the ports somebody listens on (the user `uid`, when given)."""
    wanted = {f"{port:04X}": port for port in ports}
    found = ((fields[1].rpartition(":")[2], int(fields[7])) for fields in _listeners())
    return frozenset(wanted[port] for port, owner in found if port in wanted and uid in (None, owner))


def address_of(port: int, sockets: Collection[int]) -> str | None:
    """Where one of `sockets` (inode numbers) listens on `port`, as an address to connect to."""
    suffix = f":{port:04X}"
    for fields in _listeners():
        if fields[1].endswith(suffix) and int(fields[9]) in sockets:
            raw = bytes.fromhex(fields[1].partition(":")[0])
            words = (
                raw[at : at + 4][:: -1 if sys.byteorder == "little" else 1] for at in range(0, len(raw), 4)
            )
            found = ip_address(b"".join(words))
            if found.is_unspecified:
                return "127.0.0.1" if found.version == 4 else "::1"
            return str(found)
    return None


def _address(raw: bytes) -> IPv4Address | IPv6Address:
    """The kernel prints each 32 bits in the machine's own order."""
    step = -1 if sys.byteorder == "little" else 1
    return ip_address(b"".join(raw[at : at + 4][::step] for at in range(0, len(raw), 4)))


def _listeners() -> Iterator[list[str]]:
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
