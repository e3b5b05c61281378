"""Whether somebody listens on a port: read from the kernel, as a connection would show in a server's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_LISTEN: Final = "0A"
_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")


def listening(ports: Iterable[int], uid: int | None = None) -> frozenset[int]:
    """Which of the ports somebody listens on (the user `uid`, when given)."""
    wanted = {f"{port:04X}": port for port in ports}
    return frozenset(wanted[port] for port, owner in _listeners() if port in wanted and uid in (None, owner))


def _listeners() -> Iterator[tuple[str, int]]:
    for table in _TABLES:
        try:
            with Path(table).open(encoding="utf-8") as file:
                next(file, None)
                for line in file:
                    fields = line.split(None, 8)
                    if fields[3] == _LISTEN:
                        yield fields[1].rpartition(":")[2], int(fields[7])
        except FileNotFoundError:
            continue
